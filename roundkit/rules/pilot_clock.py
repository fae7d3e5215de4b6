"""Active review time: from host clocks at start, breaks and end, or why they do not give it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from roundkit.models.pilot_review import ReviewMark, ReviewSession

_NS_IN_MS = 1_000_000


@dataclass(frozen=True)
class ClockReading:
    """The host's monotonic clock, which also counts while the host sleeps, and which start of it that is."""

    at_ns: int
    boot_id: str


@dataclass(frozen=True)
class ActiveTime:
    """Milliseconds, or why there are none; exactly one of the two is null."""

    active_ms: int | None
    unclear: str | None


def active_time(session: ReviewSession, marks: Sequence[ReviewMark], end: ClockReading) -> ActiveTime:
    """Add up the spans between start, pauses, resumptions and end.

    A host that was started anew in between, or a clock that goes backwards, gives nothing.
    """
    readings = [
        ClockReading(session.started_ns, session.boot_id),
        *(ClockReading(mark.at_ns, mark.boot_id) for mark in marks),
        end,
    ]
    if any(reading.boot_id != session.boot_id for reading in readings):
        return ActiveTime(None, "the host was started anew during the review")
    if any(later.at_ns < earlier.at_ns for earlier, later in itertools.pairwise(readings)):
        return ActiveTime(None, "the host's clock went backwards during the review")
    if problem := order_problem(marks):
        return ActiveTime(None, problem)
    spans = [
        later.at_ns - earlier.at_ns
        for number, (earlier, later) in enumerate(itertools.pairwise(readings))
        if number % 2 == 0
    ]
    return ActiveTime(sum(spans) // _NS_IN_MS, None)


def order_problem(marks: Sequence[ReviewMark]) -> str | None:
    """Say what is wrong with the order of marks: they alternate, begin with a pause, and have no gap."""
    for number, mark in enumerate(marks, start=1):
        if mark.sequence != number:
            return f"mark {number} has sequence {mark.sequence}"
        if mark.mark != ("pause" if number % 2 else "resume"):
            return f"mark {number} is a second {mark.mark}"
    return None
