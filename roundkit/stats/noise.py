"""What A/A runs say about a machine: scatter, autocorrelation, sessions, and the pairs that a gain needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from roundkit.stats.estimate import Estimate, Order, crossover_estimate
from roundkit.stats.tails import normal_isf, t_isf
from roundkit.stats.verdict import MDE_POWER, MIN_PAIRS, TWO_SIGMA


@dataclass(frozen=True, slots=True)
class NoiseSummary:
    """Noise of a benchmark under one instrument.

    Attributes:
        estimate: Crossover estimate of the A/A pairs: gain and order effect that should be none.
        sigma: Standard deviation of one run relative to its neighbour, a log ratio (about a fraction); None
            when there are too few pairs.
        autocorrelation: Lag-1 autocorrelation of the runs' logs in order of time; None when it has no value.
        pairs_needed: For each gain asked for (fraction), the pairs that show it with 80 % power; None when
            sigma is unknown.
    """

    estimate: Estimate
    sigma: float | None
    autocorrelation: float | None
    pairs_needed: tuple[tuple[float, int | None], ...]


def noise_summary(
    differences: Sequence[float], order: Sequence[Order], runs: Sequence[float], gains: Sequence[float]
) -> NoiseSummary:
    """Summarize A/A pairs of one instrument.

    Args:
        differences: n log ratios.
        order: Order of each pair.
        runs: The 2n metric values in the order in which they were run, finite and above zero.
        gains: Gains to plan for, fractions between 0 and 1.

    Raises:
        ValueError: As :func:`crossover_estimate`, or a run is not finite and above zero.
    """
    estimate = crossover_estimate(differences, order)
    sigma = None if estimate.s is None else estimate.s / math.sqrt(2)
    needed = tuple((gain, None if sigma is None else pairs_needed(sigma, gain)) for gain in gains)
    return NoiseSummary(estimate, sigma, lag_one_autocorrelation(runs), needed)


def pairs_needed(
    sigma: float, gain: float, *, power: float = MDE_POWER, z_required: float = TWO_SIGMA
) -> int:
    """Return the pairs that show a gain: 2·((z + z_power)·sigma/delta)², rounded up to whole quads.

    Args:
        sigma: Standard deviation of one run relative to its neighbour, a log ratio.
        gain: The gain, a fraction between 0 and 1, both excluded.
        power: Probability with which it is to be shown.
        z_required: Evidence that a pass needs.

    Raises:
        ValueError: ``sigma`` is negative or not finite, or the gain is out of range.
    """
    if not (math.isfinite(sigma) and sigma >= 0):
        raise ValueError(f"sigma {sigma!r} must be finite and not negative")
    if not 0 < gain < 1:
        raise ValueError(f"gain {gain!r} must lie between 0 and 1")
    pairs = 2 * ((z_required + normal_isf(1 - power)) * sigma / -math.log1p(-gain)) ** 2
    return max(MIN_PAIRS, 2 * math.ceil(round(pairs, 9) / 2))


def lag_one_autocorrelation(runs: Sequence[float]) -> float | None:
    """Return the lag-1 autocorrelation of ln(run); None with fewer than three runs or when all are equal.

    Args:
        runs: Metric values in the order of time, finite and above zero.

    Raises:
        ValueError: A value is not finite and above zero.
    """
    if any(not (math.isfinite(run) and run > 0) for run in runs):
        raise ValueError("runs must be finite and above zero")
    logs = [math.log(run) for run in runs]
    if len(logs) < 3 or max(logs) == min(logs):
        return None
    mean = math.fsum(logs) / len(logs)
    centred = [value - mean for value in logs]
    lagged = math.fsum(a * b for a, b in pairwise(centred))
    return lagged / math.fsum(value * value for value in centred)


def between_session_variance(deltas: Sequence[float], errors: Sequence[float]) -> float | None:
    """Return τ² = max(0, mean δ² - mean se²) of a round's A/A history, in squared log units.

    Args:
        deltas: Crossover means of the A/A checks.
        errors: Their standard errors.

    Returns:
        The variance left over between sessions, or None without a history.

    Raises:
        ValueError: The lengths differ.
    """
    if len(deltas) != len(errors):
        raise ValueError(f"{len(deltas)} estimates but {len(errors)} standard errors")
    if len(deltas) == 0:
        return None
    seen = math.fsum(delta * delta for delta in deltas) / len(deltas)
    expected = math.fsum(error * error for error in errors) / len(errors)
    return max(0.0, seen - expected)


def order_interval(estimate: Estimate, *, level: float = 0.95) -> tuple[float, float] | None:
    """Return the two-sided interval of the order effect: effect ± t(n-2) · se, in log units.

    Args:
        estimate: Any estimate.
        level: Confidence, between 0 and 1.

    Returns:
        Lower and upper end, or None where the effect has no standard error.
    """
    if estimate.order_effect is None or estimate.order_se is None:
        return None
    half = t_isf((1 - level) / 2, estimate.df) * estimate.order_se
    return estimate.order_effect - half, estimate.order_effect + half
