"""Gates for a new campaign: what its benchmark's noise lets a round show, and what that says in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from roundkit.models.comparison import InstrumentNoise

_STEP = 0.001
"""Proposed gains are whole multiples of a tenth of a percent, so that a person can keep them in mind."""

_LEAST_SAID = 5e-5
"""Smaller gains round to nothing in a sentence."""


@dataclass(frozen=True)
class Proposal:
    """Gates to begin with.

    Attributes:
        ab_ba_pairs: Pairs of one experiment.
        min_gain: Smallest gain that is kept, a fraction.
        detectable: Smallest gain that so many pairs show with 80 % power, a fraction; null where the noise
            is unknown.
        words: What that means, a sentence each.
    """

    ab_ba_pairs: int
    min_gain: float
    detectable: float | None
    words: tuple[str, ...]


def propose_gates(noise: InstrumentNoise | None, *, pairs: int, min_gain: float, most_pairs: int) -> Proposal:
    """Propose the fewest pairs that show the smallest gain worth keeping, or a larger gain where none do.

    The pairs grow first, since they cost time alone; only beyond ``most_pairs`` the line is raised to what
    they show.

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
    if noise.detectable_planned <= min_gain:
        return _proposal(pairs, min_gain, noise.detectable_planned)
    # The standard error falls with the square root of the pairs; more pairs are planned than are needed.
    needed = _even(pairs * (noise.detectable_planned / min_gain) ** 2)
    if needed <= most_pairs:
        return _proposal(needed, min_gain, _with(noise.detectable_planned, pairs, needed))
    least = _with(noise.detectable_planned, pairs, most_pairs)
    line = round(math.ceil(least / _STEP) * _STEP, 6)
    quieter = (
        f"To keep gains of {_percent(min_gain)} either allow {needed} pairs, or quieten the benchmark: longer"
        " trials, more repetitions within one, pinned cores (`roundkit noise` says what is untuned).",
    )
    proposal = _proposal(most_pairs, line, least)
    return Proposal(proposal.ab_ba_pairs, line, least, proposal.words + quieter)


def _proposal(pairs: int, min_gain: float, detectable: float) -> Proposal:
    shown = "any gain" if detectable < _LEAST_SAID else f"a gain of {_percent(detectable)} or more"
    words = (
        f"With {pairs} pairs {shown} shows in four experiments of five; smaller ones mostly end as"
        " not-measured, which is neither a gain nor a loss.",
        f"Gains under {_percent(min_gain)} are not kept, even where they show.",
    )
    return Proposal(pairs, min_gain, detectable, words)


def _with(detectable: float, pairs: int, other: int) -> float:
    return detectable * math.sqrt(pairs / other)


def _even(pairs: float) -> int:
    return 2 * math.ceil(pairs / 2)


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2g} %"
