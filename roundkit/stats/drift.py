"""Drift of the measurement itself: a cumulative sum over A/A checks and a limit for a single one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from roundkit.stats.rounding import round_z

DriftCause = Literal["single", "cusum-up", "cusum-down"]


@dataclass(frozen=True, slots=True)
class DriftLimits:
    """The plan's limits on A/A checks, all in standard deviations.

    Attributes:
        allowance: Shift per check that is forgiven.
        limit: Cumulative sum beyond which the queue pauses.
        single_limit: |z| of one check beyond which it pauses at once.
    """

    allowance: float
    limit: float
    single_limit: float

    def __post_init__(self) -> None:
        for name in ("allowance", "limit", "single_limit"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"drift {name} is {value!r}; it must be finite and not negative")


@dataclass(frozen=True, slots=True)
class DriftState:
    """Where the two sums stand after some checks.

    Attributes:
        checks: Checks counted.
        up: Sum towards "second checkout faster", never below zero.
        down: Sum towards "second checkout slower", never below zero.
        cause: What the latest check exceeded, or None: the queue goes on.
    """

    checks: int = 0
    up: float = 0.0
    down: float = 0.0
    cause: DriftCause | None = None

    @property
    def paused(self) -> bool:
        """Whether the queue has to pause."""
        return self.cause is not None


def drift_step(state: DriftState, z: float, limits: DriftLimits) -> DriftState:
    """Return the state after one more A/A check (two-sided CUSUM; Page, 1954).

    Args:
        state: State before; ``DriftState()`` at the start and after each pause that was dealt with.
        z: Evidence of the check (``z_eff``: with few pairs delta/se alone has longer tails).
        limits: The plan's limits.

    Returns:
        The new state, its sums rounded to 9 decimals.

    Raises:
        ValueError: ``z`` is not finite.
    """
    if not math.isfinite(z):
        raise ValueError(f"z of an A/A check is {z!r}; a check without evidence is no check")
    up = round(max(0.0, state.up + z - limits.allowance), 9)
    down = round(max(0.0, state.down - z - limits.allowance), 9)
    cause: DriftCause | None = None
    if abs(round_z(z)) > limits.single_limit:
        cause = "single"
    elif up > limits.limit:
        cause = "cusum-up"
    elif down > limits.limit:
        cause = "cusum-down"
    return DriftState(checks=state.checks + 1, up=up, down=down, cause=cause)
