"""The interaction ratio of a composition step, both gains in the metric's own unit."""

from __future__ import annotations

import math

from roundkit.models.campaign import Direction
from roundkit.models.ledger import InteractionRatio
from roundkit.models.verdict import VerdictRecord
from roundkit.stats.ratio import MeasuredGain, ratio_of_gains

BY_CONSTRUCTION = InteractionRatio(value=1.0, low=None, high=None, basis="by-construction")
UNMEASURABLE = InteractionRatio(value=None, low=None, high=None, basis="unmeasurable")


def interaction_ratio(
    step: VerdictRecord | None, alone: VerdictRecord | None, direction: Direction, *, fresh: bool
) -> InteractionRatio:
    """Return a step's gain over the lane's standalone gain, with its 95 % Fieller interval.

    In a unit such as milliseconds, what two stages of one critical path save adds up, so that lanes which
    do not touch each other have a ratio of 1; as fractions of a shrinking total they would not.

    Args:
        step: Verdict of the composition step.
        alone: Verdict of the lane alone against I0.
        direction: Which way of the metric is better.
        fresh: Whether ``alone`` was measured anew, or is the gain that selected the lane.
    """
    above, below = _measured_gain(step, direction), _measured_gain(alone, direction)
    ratio = ratio_of_gains(above, below) if above is not None and below is not None else None
    if ratio is None:
        return UNMEASURABLE
    basis = "fresh" if fresh else "reused-selected"
    return InteractionRatio(value=ratio.value, low=ratio.low, high=ratio.high, basis=basis)


def _measured_gain(verdict: VerdictRecord | None, direction: Direction) -> MeasuredGain | None:
    """Return a gain in the metric's unit with its standard error (delta method), between sessions too."""
    if verdict is None or verdict.gain_unit is None or verdict.standard_error is None:
        return None
    if verdict.delta is None or verdict.baseline_median is None:
        return None
    turned = -verdict.delta if direction == "lower" else verdict.delta
    log_error = math.hypot(verdict.standard_error, verdict.session_sd or 0.0)
    error = verdict.baseline_median * math.exp(turned) * log_error
    return MeasuredGain(verdict.gain_unit, error, verdict.pairs - 2)
