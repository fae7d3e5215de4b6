"""The one clock: UTC for records, the monotonic clock for deadlines that bound running work."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from roundkit.core.canonical import LARGEST_INTEGER

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NS_IN_US = 1000
MS_IN_S = 1000.0
"""Clocks are read in seconds; metrics and reports speak of milliseconds."""


@dataclass(frozen=True)
class BothClocks:
    """One moment on the clock that people set, and on the one that counts from the host's start.

    Attributes:
        utc: The first.
        from_us: The second right before the first was read, in microseconds, rounded down.
        to_us: The second right after that, rounded up.
        boot_id: Which start of the host it counts from.
    """

    utc: datetime
    from_us: int
    to_us: int
    boot_id: str


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
    return writable_count(_since_boot_ns(), _boot_id())


def writable_count(at_ns: int, boot_id: str) -> tuple[int, str]:
    """Return a count that canonical JSON holds: after 104 days it is anew, as of another start."""
    turn, rest = divmod(at_ns, LARGEST_INTEGER + 1)
    return rest, f"{boot_id}+{turn}" if turn else boot_id


def both_clocks() -> BothClocks | None:
    """Read both of the host's clocks at once; None where this operating system has but one.

    The kernel slews both alike. What is between them changes only where somebody sets the first one.
    """
    try:
        boot_id, before = _boot_id(), _since_boot_ns()
        utc = now_utc()
        after = _since_boot_ns()
    except OSError:
        return None
    return BothClocks(utc, before // _NS_IN_US, -(-after // _NS_IN_US), boot_id)


def _since_boot_ns() -> int:
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    if clock is None:
        raise OSError("this operating system has no clock that counts from its start")
    return time.clock_gettime_ns(clock)


def _boot_id() -> str:
    return _BOOT_ID.read_text(encoding="ascii").strip()


def is_expired(deadline: datetime, now: datetime) -> bool:
    """Say whether ``now`` has reached ``deadline``; the boundary itself is expired."""
    return now >= deadline


@dataclass(frozen=True)
class SteadyClock:
    """UTC that does not run ahead of what has passed, whatever the clock is set to meanwhile.

    Attributes:
        utc: What the clock said at some moment.
        at_s: Value of :func:`time.monotonic` at that moment.
    """

    utc: datetime
    at_s: float

    @classmethod
    def start(cls) -> SteadyClock:
        """Return a clock that believes what the host's clock says now."""
        return cls(now_utc(), time.monotonic())

    def now(self) -> datetime:
        """Return the current time, or an earlier one where the clock was set."""
        return min(now_utc(), self.utc + timedelta(seconds=time.monotonic() - self.at_s))


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
