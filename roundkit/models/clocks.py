"""One moment on both of a host's clocks, so that a reader sees whether somebody set the first one."""

from __future__ import annotations

from typing import Self

from roundkit.core.clock import BothClocks
from roundkit.models.base import Count, Record, UtcTime


class ClockPair(Record):
    """One moment on the clock that people set, and on the one that counts from the host's start.

    Attributes:
        utc: The first.
        from_us: The second right before the first was read, in microseconds.
        to_us: The second right after that.
        boot_id: Which start of the host the second counts from.
    """

    utc: UtcTime
    from_us: Count
    to_us: Count
    boot_id: str

    @classmethod
    def of(cls, read: BothClocks | None) -> Self | None:
        """Return what was read as a record; None where the host has but one clock."""
        if read is None:
            return None
        return cls(utc=read.utc, from_us=read.from_us, to_us=read.to_us, boot_id=read.boot_id)
