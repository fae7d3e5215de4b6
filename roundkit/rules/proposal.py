"""Gates for a new campaign: what its benchmark's noise lets a round show, and what that says in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from roundkit.models.comparison import InstrumentNoise
from roundkit.stats.differences import gain_fraction
from roundkit.stats.tails import normal_isf
from roundkit.stats.verdict import MDE_POWER, TWO_SIGMA

_STEP = 0.001
"""Proposed gains are whole multiples of a tenth of a percent, so that a person can keep them in mind."""

_POWER_SIGMA = normal_isf(1 - MDE_POWER)
"""Standard errors by which a true gain is above a line that it passes in four experiments of five."""


@dataclass(frozen=True)
class Proposal:
    """Gates to begin with.

    Attributes:
        ab_ba_pairs: Pairs of one experiment.
        min_gain: Smallest estimate that is kept, a fraction.
        passes: Smallest true gain that passes both gates with 80 % power, a fraction; null where the noise is
            unknown.
        words: What that means, a sentence each.
    """

    ab_ba_pairs: int
    min_gain: float
    passes: float | None
    words: tuple[str, ...]


def propose_gates(noise: InstrumentNoise | None, *, pairs: int, min_gain: float, most_pairs: int) -> Proposal:
    """Propose the fewest pairs that show the smallest gain worth keeping, or a larger line where none do.

    The pairs grow first, since they cost time alone. Only where an estimate of ``min_gain`` is within the
    noise of ``most_pairs`` pairs, the line is raised to the smallest that is not.

    Args:
        noise: The benchmark's noise under the instrument that decides; null where nobody measured it.
        pairs: Pairs to begin with; the noise's ``detectable_planned`` is for these.
        min_gain: Smallest gain worth keeping, a fraction.
        most_pairs: Most pairs that one experiment may take.
    """
    if noise is None or noise.detectable_planned is None:
        why = "nobody measured it" if noise is None else noise.missing or "too few pairs to tell"
        return Proposal(
            pairs, min_gain, None,
            (f"The noise is unknown ({why}): whether {pairs} pairs show {_percent(min_gain)} is too.",),
        )  # fmt: skip
    error = _error(noise.detectable_planned)
    if noise.detectable_planned <= min_gain:
        return _proposal(pairs, min_gain, error)
    # The standard error falls with the square root of the pairs; more pairs are planned than are needed.
    needed = _even(pairs * (error / _error(min_gain)) ** 2)
    if needed <= most_pairs:
        return _proposal(needed, min_gain, error * math.sqrt(pairs / needed))
    error *= math.sqrt(pairs / most_pairs)
    line = max(min_gain, _whole_steps(gain_fraction(TWO_SIGMA * error)))
    quieter = (
        f"For gains of {_percent(min_gain)} to show as often either allow {needed} pairs, or quieten the"
        " benchmark: longer trials, more repetitions within one, pinned cores (`roundkit noise` says what is"
        " untuned).",
    )
    proposal = _proposal(most_pairs, line, error)
    return Proposal(most_pairs, line, proposal.passes, proposal.words + quieter)


def smallest_line(detectable: float) -> float:
    """Return the smallest estimate that is evidence of a gain, in whole tenths of a percent, as a fraction.

    It is the evidence that a pass needs, times the standard error. At the smallest detectable gain itself a
    line would turn away half of the true gains of that size.

    Args:
        detectable: Smallest gain that the same pairs show with 80 % power, a fraction.
    """
    return _whole_steps(gain_fraction(TWO_SIGMA * _error(detectable)))


def _proposal(pairs: int, min_gain: float, error: float) -> Proposal:
    # A true gain has to be beyond the noise and beyond the line.
    passes = gain_fraction(max(TWO_SIGMA * error, _log(min_gain)) + _POWER_SIGMA * error)
    words = (
        f"With {pairs} pairs a gain of {_percent(passes)} or more passes in four experiments of five; smaller"
        " ones pass less often, and mostly end as not-measured, which is neither a gain nor a loss.",
        f"An estimate under {_percent(min_gain)} is not kept, even where it shows.",
    )
    return Proposal(pairs, min_gain, passes, words)


def _error(detectable: float) -> float:
    """Return the standard error, in log units, behind a smallest detectable gain."""
    return _log(detectable) / (TWO_SIGMA + _POWER_SIGMA)


def _log(gain: float) -> float:
    # No time at all has no logarithm; half a step from there is as good.
    return -math.log1p(-min(gain, 1 - _STEP / 2))


def _whole_steps(gain: float) -> float:
    return round(min(1 - _STEP, math.ceil(round(gain / _STEP, 6)) * _STEP), 6)


def _even(pairs: float) -> int:
    return 2 * math.ceil(round(pairs, 6) / 2)


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2g} %"
