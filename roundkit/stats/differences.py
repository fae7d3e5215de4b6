"""From metric values to log ratios and back to gains, with every unusable value refused at the door."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from roundkit.stats.rounding import UNITS_PER_LOG, round_gain, to_units

Direction = Literal["lower", "higher"]
Side = Literal["baseline", "candidate"]

_LARGEST_LOG = 690.0
"""Log ratio just below those whose ratio no float holds."""


class BadSample(ValueError):
    """A metric value that no comparison can use: not a number, infinite, zero or negative.

    Attributes:
        side: Whose value it is.
        index: Position of the pair, from 0.
        value: The value as given.
    """

    def __init__(self, side: Side, index: int, value: float) -> None:
        self.side: Side = side
        self.index = index
        self.value = value
        super().__init__(f"{side} value of pair {index} is {value!r}; a metric must be finite and above zero")


def paired_differences(
    baseline: Sequence[float], candidate: Sequence[float], direction: Direction
) -> tuple[float, ...]:
    """Return d = ln(baseline) - ln(candidate) per pair; the sign is turned when higher is better.

    Positive is a gain.

    Args:
        baseline: n metric values of the baseline, one a pair, all in one unit.
        candidate: n metric values of the candidate, in the same unit and order.
        direction: Which way is better, ``lower`` or ``higher``.

    Returns:
        n log ratios without unit, rounded to 1e-12.

    Raises:
        BadSample: A value is not finite and above zero.
        ValueError: The lengths differ, there is no pair, or the direction is unknown.
    """
    if direction not in ("lower", "higher"):
        raise ValueError(f"direction {direction!r} is neither 'lower' nor 'higher'")
    if len(baseline) != len(candidate):
        raise ValueError(f"{len(baseline)} baseline values but {len(candidate)} candidate values")
    if len(baseline) == 0:
        raise ValueError("no pair given")
    for index, pair in enumerate(zip(baseline, candidate, strict=True)):
        _check_pair(index, *pair)
    if direction == "lower":
        return tuple(_log_ratio(b, c) for b, c in zip(baseline, candidate, strict=True))
    return tuple(_log_ratio(c, b) for b, c in zip(baseline, candidate, strict=True))


def _check_pair(index: int, baseline: float, candidate: float) -> None:
    if not (math.isfinite(baseline) and baseline > 0):
        raise BadSample("baseline", index, baseline)
    if not (math.isfinite(candidate) and candidate > 0):
        raise BadSample("candidate", index, candidate)


def _log_ratio(numerator: float, denominator: float) -> float:
    ratio = numerator / denominator
    # Equal ratios give the same float, hence true ties; the difference of logs serves ratios out of range.
    in_range = math.isfinite(ratio) and ratio > 0
    value = math.log(ratio) if in_range else math.log(numerator) - math.log(denominator)
    return to_units(value) / UNITS_PER_LOG


def gain_fraction(delta: float) -> float:
    """Return the gain ``1 - exp(-delta)`` of a log ratio, as a fraction (negative for a loss).

    A loss that no float holds, as an interval of very few pairs may have one, is shown as the largest that
    one does.
    """
    return round_gain(-math.expm1(min(-delta, _LARGEST_LOG)))


def gain_in_unit(baseline: Sequence[float], delta: float, direction: Direction) -> float:
    """Return the gain in the metric's own unit, at the median of the baseline.

    Args:
        baseline: n baseline values in the metric's unit.
        delta: Estimated log ratio, positive for a gain.
        direction: Which way is better.

    Returns:
        How much lower (or higher, where higher is better) the candidate is; negative for a loss.
    """
    ordered = sorted(baseline)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return middle * (-math.expm1(-delta) if direction == "lower" else math.expm1(delta))
