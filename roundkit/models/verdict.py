"""A verdict with the looks and the numbers behind it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from roundkit.models.base import Count, Record

VerdictName = Literal["pass", "fail", "not-measured", "invalid"]


class LookRecord(Record):
    """One look at an experiment before or at its last pair.

    Attributes:
        pairs: Pairs at this look.
        boundary: Evidence that ends the experiment here, in sigma.
        statistic: Test behind ``z``.
        z: Evidence seen.
        conditional_power: Probability of crossing the last boundary under the optimistic effect; null at the
            last look and without a futility rule.
        stop: Why the experiment ended here; null when it went on.
    """

    pairs: Count
    boundary: float
    statistic: Literal["t", "signed-rank", "each-order"] | None
    z: float
    conditional_power: float | None
    stop: Literal["gain", "loss", "futility", "last"] | None


class VerdictRecord(Record):
    """A verdict with the numbers behind it; recomputable from the experiment and the gates.

    Attributes:
        reason: Code of the one rule that decided.
        pairs: Pairs behind it.
        gain: Estimated gain as a fraction; null when nothing was estimated.
        gain_unit: The same in the metric's own unit, at the baseline's median.
        low: Lower end of the 95 % interval of the gain.
        high: Upper end of it.
        z: Evidence against no gain, in sigma.
        delta: Estimated gain as a log ratio.
        standard_error: Standard error of ``delta``.
        order_effect: Estimated order effect as a log ratio, with its standard error.
        order_standard_error: Standard error of ``order_effect``.
        baseline_median: Median of the baseline, in the metric's unit.
        candidate_median: Median of the candidate, in the metric's unit.
        smallest_detectable_gain: What this many pairs could have shown at 80 % power.
        z_required: Evidence that was required: ``sigma_min``, or the boundary of the last look.
        session_sd: Standard deviation between sessions that interval and evidence contain, a log ratio; null
            where it is not known.
        looks: Every look of an experiment that may end early; none where all pairs were measured.
        guards: Each guard, and whether it was kept.
        forgeable: Whether the candidate can reach its own figure.
    """

    verdict: VerdictName
    reason: str
    sentence: str
    pairs: Count
    gain: float | None
    gain_unit: float | None
    low: float | None
    high: float | None
    z: float | None
    delta: float | None
    standard_error: float | None
    statistic: Literal["t", "signed-rank", "each-order"] | None
    order_effect: float | None
    order_standard_error: float | None
    baseline_median: float | None
    candidate_median: float | None
    smallest_detectable_gain: float | None
    z_required: float | None = None
    session_sd: float | None = None
    looks: tuple[LookRecord, ...] = ()
    guards: dict[str, bool] = Field(default_factory=dict)
    forgeable: bool
