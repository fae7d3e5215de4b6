"""The one clock: UTC for records, the monotonic clock for deadlines that bound running work."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
MS_IN_S = 1000.0
"""Clocks are read in seconds; metrics and reports speak of milliseconds."""


def now_utc() -> datetime:
    """Return the current time, timezone-aware, in UTC."""
    return datetime.now(UTC)


def format_utc(moment: datetime) -> str:
    """Write a moment as RFC 3339 in UTC with microseconds, e.g. ``2026-01-31T12:00:00.000000Z``.

    Raises:
        ValueError: ``moment`` has no timezone.
    """
    if moment.tzinfo is None:
        raise ValueError(f"a moment without a timezone cannot be recorded: {moment!r}")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def host_clock() -> tuple[int, str]:
    """Return nanoseconds since the host was started, sleep included, and which start of the host that is.

    Raises:
        OSError: this operating system has no such clock.
    """
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    if clock is None:
        raise OSError("this operating system has no clock that counts from its start")
    return time.clock_gettime_ns(clock), _BOOT_ID.read_text(encoding="ascii").strip()


def is_expired(deadline: datetime, now: datetime) -> bool:
    """Say whether ``now`` has reached ``deadline``; the boundary itself is expired."""
    return now >= deadline


@dataclass(frozen=True)
class Deadline:
    """A moment on the monotonic clock at which running work ends.

    Attributes:
        at_s: Value of :func:`time.monotonic`, in seconds, at which the deadline is reached.
    """

    at_s: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline that many seconds from now."""
        return cls(time.monotonic() + seconds)

    def remaining_s(self) -> float:
        """Return the seconds left, never negative."""
        return max(0.0, self.at_s - time.monotonic())

    def expired(self) -> bool:
        """Say whether the deadline has been reached."""
        return time.monotonic() >= self.at_s

    def earlier(self, other: Deadline) -> Deadline:
        """Return whichever of the two deadlines comes first."""
        return self if self.at_s <= other.at_s else other
