"""How busy the fleet was: from the recorded intervals of its shards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Interval = tuple[float, float]
"""Start and end of one shard, in seconds on one clock."""


@dataclass(frozen=True)
class FleetUse:
    """What the fleet did between the first start and the last end.

    Attributes:
        wall_s: Seconds between the two.
        idle_s: Of them, those in which no agent ran at all.
        busy_s: Seconds of all agents together.
        most: Agents that ran at once at most.
    """

    wall_s: float
    idle_s: float
    busy_s: float
    most: int

    @property
    def idle_share(self) -> float | None:
        """Share of the time in which no agent ran; null before there was any."""
        return self.idle_s / self.wall_s if self.wall_s > 0 else None

    @property
    def mean_running(self) -> float | None:
        """Agents that ran at once on average; null before there was any."""
        return self.busy_s / self.wall_s if self.wall_s > 0 else None


def fleet_use(intervals: Iterable[Interval]) -> FleetUse:
    """Add up the intervals of a fleet."""
    known = sorted(intervals)
    if not known:
        return FleetUse(0.0, 0.0, 0.0, 0)
    begin, covered_until, idle_s = known[0][0], known[0][0], 0.0
    for start, end in known:
        idle_s += max(0.0, start - covered_until)
        covered_until = max(covered_until, end)
    return FleetUse(
        wall_s=covered_until - begin,
        idle_s=idle_s,
        busy_s=sum(end - start for start, end in known),
        most=_most_at_once(known),
    )


def _most_at_once(intervals: list[Interval]) -> int:
    # An end comes before a start at the same moment: the one made room for the other.
    changes = sorted([(start, 1) for start, _ in intervals] + [(end, -1) for _, end in intervals])
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most
