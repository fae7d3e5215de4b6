"""Active review time: from host clocks at start, breaks and end, or why they do not give it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from roundkit.models.pilot_review import ReviewMark, ReviewSession

_NS_IN_MS = 1_000_000
_NS_IN_US = 1_000
_SET = timedelta(minutes=10)
"""What the clock of dates may be set by while somebody reviews, or the other one stand still."""


@dataclass(frozen=True)
class ClockReading:
    """The host's monotonic clock, which also counts while the host sleeps, and which start of it that is.

    Attributes:
        utc: The same moment as a date.
    """

    at_ns: int
    boot_id: str
    utc: datetime


@dataclass(frozen=True)
class ActiveTime:
    """Milliseconds, or why there are none; exactly one of the two is null."""

    active_ms: int | None
    unclear: str | None


def active_time(session: ReviewSession, marks: Sequence[ReviewMark], end: ClockReading) -> ActiveTime:
    """Add up the spans between start, pauses, resumptions and end.

    A host that was started anew in between, or a clock that goes backwards, gives nothing. Nor does a span of
    another length by its dates: what was paused with everything in it counts nothing, as a virtual machine
    does. What a break has is never asked.
    """
    readings = [
        ClockReading(session.started_ns, session.boot_id, session.started_utc),
        *(ClockReading(mark.at_ns, mark.boot_id, mark.at_utc) for mark in marks),
        end,
    ]
    if any(reading.boot_id != session.boot_id for reading in readings):
        return ActiveTime(None, "the host was started anew during the review")
    if any(later.at_ns < earlier.at_ns for earlier, later in itertools.pairwise(readings)):
        return ActiveTime(None, "the host's clock went backwards during the review")
    if problem := order_problem(marks):
        return ActiveTime(None, problem)
    spans = list(itertools.pairwise(readings))[::2]
    if any(abs(later.utc - earlier.utc - _counted(earlier, later)) > _SET for earlier, later in spans):
        return ActiveTime(None, "the host's two clocks tell of other times during the review")
    return ActiveTime(sum(later.at_ns - earlier.at_ns for earlier, later in spans) // _NS_IN_MS, None)


def _counted(earlier: ClockReading, later: ClockReading) -> timedelta:
    return timedelta(microseconds=(later.at_ns - earlier.at_ns) // _NS_IN_US)


def order_problem(marks: Sequence[ReviewMark]) -> str | None:
    """Say what is wrong with the order of marks: they alternate, begin with a pause, and have no gap."""
    for number, mark in enumerate(marks, start=1):
        if mark.sequence != number:
            return f"mark {number} has sequence {mark.sequence}"
        if mark.mark != ("pause" if number % 2 else "resume"):
            return f"mark {number} is a second {mark.mark}"
    return None
