"""The decision of a policy pilot: faster, slower, or not distinguishable. Pure, and symmetric in the arms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from roundkit.models.policy_run import DecisionName, PairOutcome, PairWinner

LATER_THAN_ANY = math.inf
"""A censored run's time."""


@dataclass(frozen=True)
class RunResult:
    """What a decision knows of one run.

    Attributes:
        time_s: Seconds to the target; infinite when it is censored; None when the run broke.
        final_gain: Of its last incumbent, a fraction; None when the run broke.
    """

    time_s: float | None
    final_gain: float | None


@dataclass(frozen=True)
class Verdict:
    """A decision with everything that it rests on; ``median_ratio`` may be infinite, and None without one."""

    decision: DecisionName
    reasons: tuple[str, ...]
    pairs: tuple[PairOutcome, ...]
    median_ratio: float | None
    p_final_gain: float | None
    s_final_gain: float | None


def decide_policy(p: Sequence[RunResult], s: Sequence[RunResult], threshold: float) -> Verdict:
    """Decide a pilot whose every slot is used.

    ``faster``: P reaches the target before S in every repetition pair, the median of the ratios P to S is
    under the threshold, and P's median final gain is not lower. ``slower``: the same with the arms exchanged.
    Anything else is ``not distinguishable``. A censored run is later than any time, so that its ratio is the
    limit 0 or infinity; a pair with both censored, or with a run that broke, has no first.

    Args:
        p: The runs of P by repetition.
        s: The runs of S by repetition.
        threshold: What the median ratio must be under.

    Raises:
        ValueError: the arms do not have the same number of runs, or have none.
    """
    if len(p) != len(s) or not p:
        raise ValueError(f"pairs need as many runs of P as of S: {len(p)} and {len(s)}")
    pairs = tuple(_pair(number, *both) for number, both in enumerate(zip(p, s, strict=True), 1))
    gains = _median_gain(p), _median_gain(s)
    forward, backward = _median_ratio(p, s), _median_ratio(s, p)
    decision: DecisionName = "not distinguishable"
    if _is_first("P", pairs, forward, threshold, *gains):
        decision = "faster"
    elif _is_first("S", pairs, backward, threshold, *reversed(gains)):
        decision = "slower"
    # Told for the arm that was first more often, so that the reader sees which condition failed.
    ahead = "S" if _wins(pairs, "S") > _wins(pairs, "P") else "P"
    ratio, ordered = (forward, gains) if ahead == "P" else (backward, (gains[1], gains[0]))
    return Verdict(decision, _reasons(ahead, pairs, ratio, threshold, ordered), pairs, forward, *gains)


def equal_arms_say_faster(pairs: int) -> float:
    """Return the probability, at most, with which two arms of equal speed are called ``faster``.

    With equal arms the two times of a pair are exchangeable, so that each arm is first with probability one
    half, pair by pair independently (fresh sessions): P is first in all n pairs with probability ``2 ** -n``,
    12.5 % at three and 3.125 % at five. Ties, pairs with both censored and the two further conditions can
    only lower that, and it is exact where none of them ever fails. ``slower`` has the same probability.

    Args:
        pairs: Number of repetition pairs.
    """
    return float(0.5**pairs)


def time_of(target_s: float | None, *, censored: bool) -> float | None:
    """Return a run's time for the decision; None for one that broke."""
    return LATER_THAN_ANY if censored else target_s


def _pair(repetition: int, p: RunResult, s: RunResult) -> PairOutcome:
    p_s, s_s = _finite(p.time_s), _finite(s.time_s)
    return PairOutcome(
        repetition=repetition,
        p_s=p_s,
        s_s=s_s,
        ratio=None if p_s is None or s_s is None else _finite(_ratio(p, s)),
        winner=_winner(p.time_s, s.time_s),
    )


def _winner(p: float | None, s: float | None) -> PairWinner:
    if p is None or s is None:
        return "incomplete"
    if p == s:
        return "both-censored" if p == LATER_THAN_ANY else "tie"
    return "P" if p < s else "S"


def _ratio(mine: RunResult, other: RunResult) -> float | None:
    """Return the ratio of two times, or its limit; None where it has none."""
    if mine.time_s is None or other.time_s is None:
        return None
    if mine.time_s == other.time_s:
        return None if mine.time_s == LATER_THAN_ANY else 1.0
    if other.time_s == 0.0:
        return math.inf
    return 0.0 if other.time_s == LATER_THAN_ANY else mine.time_s / other.time_s


def _median_ratio(mine: Sequence[RunResult], others: Sequence[RunResult]) -> float | None:
    ratios = [_ratio(*both) for both in zip(mine, others, strict=True)]
    known = [ratio for ratio in ratios if ratio is not None]
    return median(known) if known and len(known) == len(ratios) else None


def _median_gain(runs: Sequence[RunResult]) -> float | None:
    gains = [run.final_gain for run in runs if run.final_gain is not None]
    return median(gains) if len(gains) == len(runs) else None


def _wins(pairs: Sequence[PairOutcome], arm: str) -> int:
    return sum(pair.winner == arm for pair in pairs)


def _is_first(
    arm: str,
    pairs: Sequence[PairOutcome],
    ratio: float | None,
    threshold: float,
    gain: float | None,
    other_gain: float | None,
) -> bool:
    first = _wins(pairs, arm) == len(pairs)
    under = ratio is not None and ratio < threshold
    return first and under and gain is not None and other_gain is not None and gain >= other_gain


def _reasons(
    arm: str,
    pairs: Sequence[PairOutcome],
    ratio: float | None,
    threshold: float,
    gains: tuple[float | None, ...],
) -> tuple[str, ...]:
    other = "S" if arm == "P" else "P"
    undecided = [f"{pair.repetition} ({pair.winner})" for pair in pairs if pair.winner not in {"P", "S"}]
    first = f"{arm} reached the target before {other} in {_wins(pairs, arm)} of {len(pairs)} pairs"
    if undecided:
        first += f"; no first in pair {', '.join(undecided)}"
    if ratio is None:
        second = f"the median ratio {arm} to {other} has no value, since a pair has none"
    else:
        where = "under" if ratio < threshold else "not under"
        shown = "infinite" if math.isinf(ratio) else f"{ratio:.3f}"
        second = f"the median ratio {arm} to {other} is {shown}, {where} the threshold {threshold:g}"
    mine, theirs = gains
    if mine is None or theirs is None:
        third = "the median final gains cannot be compared, since a run broke"
    else:
        word = "not lower than" if mine >= theirs else "lower than"
        third = f"{arm}'s median final gain {mine:.2%} is {word} {other}'s {theirs:.2%}"
    return (first, second, third)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
