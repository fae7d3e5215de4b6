"""Ratio of two measured gains with its Fieller interval, and the correction of selected gains."""

from __future__ import annotations

import math
from dataclasses import dataclass

import scipy

from roundkit.stats.rounding import round_gain
from roundkit.stats.tails import normal_sf, t_isf


@dataclass(frozen=True, slots=True)
class MeasuredGain:
    """A gain in the metric's own unit, with its standard error and degrees of freedom."""

    value: float
    error: float
    df: int


@dataclass(frozen=True, slots=True)
class GainRatio:
    """A ratio of two gains and the ends of its interval."""

    value: float
    low: float
    high: float


def ratio_of_gains(step: MeasuredGain, alone: MeasuredGain, *, level: float = 0.95) -> GainRatio | None:
    """Return the ratio of two independently measured gains with its Fieller (1954) interval.

    Args:
        step: Composition step, new head against the previous one.
        alone: The same lane against the incumbent of the round, in the same unit.
        level: Confidence.

    Returns:
        The ratio, or None where the standalone gain is not clearly above zero.
    """
    # The smaller degrees of freedom: never too short an interval.
    quantile = t_isf((1 - level) / 2, min(step.df, alone.df))
    limits = fieller_interval(step.value, step.error, alone.value, alone.error, quantile)
    if limits is None:
        return None
    return GainRatio(round_gain(step.value / alone.value), round_gain(limits[0]), round_gain(limits[1]))


def fieller_interval(
    above: float, error_above: float, below: float, error_below: float, quantile: float
) -> tuple[float, float] | None:
    """Return the ends of {r: (above - r·below)² ≤ q²·(e_above² + r²·e_below²)} (Fieller, 1954).

    Args:
        above: Numerator.
        error_above: Its standard error.
        below: Denominator, independent of the numerator.
        error_below: Its standard error.
        quantile: Two-sided quantile q.

    Returns:
        Lower and upper end; None when the denominator is not above zero by ``q`` standard errors.
    """
    if below <= quantile * error_below:
        return None
    square = below**2 - (quantile * error_below) ** 2
    # (above·below)² - square·(above² - q²e²), written so that nothing cancels.
    root = quantile * math.sqrt(
        (below * error_above) ** 2 + (above * error_below) ** 2 - (quantile * error_above * error_below) ** 2
    )
    return (above * below - root) / square, (above * below + root) / square


def conditional_estimate(delta: float, se: float, threshold_z: float) -> float:
    """Return the gain most likely given that it was selected because ``delta / se`` reached a threshold.

    Conditional maximum likelihood (Zhong and Prentice, 2008): solves
    ``delta/se = m + φ(threshold - m) / Φ(m - threshold)`` for the standardized mean m. Close to the threshold
    the solution falls without end; it is shown as 0 then: selection alone explains the estimate.

    Args:
        delta: Estimate of a passing ticket, a log ratio.
        se: Its standard error, above zero.
        threshold_z: Evidence that selected it.

    Returns:
        The corrected log ratio, between 0 and ``delta``; ``delta`` itself below the threshold.

    Raises:
        ValueError: ``se`` is not above zero.
    """
    if not se > 0:
        raise ValueError(f"standard error {se!r} must be above zero")
    seen = delta / se
    if seen <= threshold_z:
        return delta

    def excess(mean: float) -> float:
        return mean + _mills(threshold_z - mean) - seen

    if excess(0.0) >= 0:
        return 0.0
    return se * float(scipy.optimize.brentq(excess, 0.0, seen))


def _mills(x: float) -> float:
    """Return φ(x) / (1 - Φ(x))."""
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi) / normal_sf(x)
