"""Guard metrics: what must not get worse while the decision metric gets better, held against its limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from roundkit.stats.differences import Direction
from roundkit.stats.rounding import round_gain


@dataclass(frozen=True, slots=True)
class GuardResult:
    """A guard metric held against its limit.

    Attributes:
        name: The metric's name.
        value: How much worse the candidate is, a fraction, or its own value where the limit has a unit;
            None where the baseline is zero and the candidate is not.
        limit: The plan's limit, in the same terms.
        ok: Whether the candidate keeps it.
    """

    name: str
    value: float | None
    limit: float
    ok: bool


def relative_guard(
    name: str, baseline: Sequence[float], candidate: Sequence[float], direction: Direction, limit: float
) -> GuardResult:
    """Hold a guard metric against a limit relative to the baseline, by the median of the pairs.

    Args:
        name: The metric's name.
        baseline: n finite values of the baseline, zero or above.
        candidate: n finite values of the candidate, in the same unit and order.
        direction: Which way is better.
        limit: Largest worsening allowed, a fraction of the baseline.

    Returns:
        The median worsening held against the limit; not ok where it has no finite value.

    Raises:
        ValueError: The lengths differ, there is no pair, or a value is not finite or is below zero.
    """
    _check_guard(name, baseline, candidate)
    turn = 1.0 if direction == "lower" else -1.0
    changes = [turn * _relative_change(b, c) for b, c in zip(baseline, candidate, strict=True)]
    middle = _median(changes)
    if not math.isfinite(middle):
        return GuardResult(name=name, value=None, limit=limit, ok=middle < 0)
    value = round_gain(middle)
    return GuardResult(name=name, value=value, limit=limit, ok=value <= limit)


def absolute_guard(name: str, candidate: Sequence[float], direction: Direction, limit: float) -> GuardResult:
    """Hold the median of a guard metric against a limit in the metric's own unit.

    Args:
        name: The metric's name.
        candidate: n finite values of the candidate, zero or above.
        direction: Which way is better: the limit is a ceiling for ``lower``, a floor for ``higher``.
        limit: The limit, in the metric's unit.

    Returns:
        The median held against the limit.

    Raises:
        ValueError: There is no value, or one is not finite or is below zero.
    """
    _check_guard(name, candidate, candidate)
    value = _median(candidate)
    return GuardResult(name, value, limit, value <= limit if direction == "lower" else value >= limit)


def _check_guard(name: str, baseline: Sequence[float], candidate: Sequence[float]) -> None:
    if not baseline or len(baseline) != len(candidate):
        raise ValueError(f"guard {name}: {len(baseline)} baseline values, {len(candidate)} candidate values")
    for value in (*baseline, *candidate):
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"guard {name}: value {value!r} is not finite and at least zero")


def _relative_change(baseline: float, candidate: float) -> float:
    if baseline == candidate:
        return 0.0
    return (candidate - baseline) / baseline if baseline else math.inf


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if low == high else (low + high) / 2
