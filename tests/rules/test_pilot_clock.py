"""P09: active review time from clock readings, as a table."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from roundkit.models.pilot_review import ReviewMark, ReviewSession
from roundkit.rules.pilot_clock import ClockReading, active_time

_MS = 1_000_000
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
Mark = tuple[int, str, int, str]


@pytest.mark.parametrize(
    ("marks", "end", "wanted"),
    [
        ([], (60, "b"), 50),
        ([], (10, "b"), 0),
        ([(1, "pause", 20, "b"), (2, "resume", 50, "b")], (60, "b"), 20),
        ([(1, "pause", 20, "b")], (60, "b"), 10),
        ([(1, "pause", 20, "b"), (2, "resume", 20, "b")], (60, "b"), 50),
        ([], (9, "b"), "the host's clock went backwards during the review"),
        ([(1, "pause", 70, "b")], (60, "b"), "the host's clock went backwards during the review"),
        ([], (60, "c"), "the host was started anew during the review"),
        ([(1, "pause", 20, "c")], (60, "b"), "the host was started anew during the review"),
        ([(1, "resume", 20, "b")], (60, "b"), "mark 1 is a second resume"),
        ([(1, "pause", 20, "b"), (2, "pause", 30, "b")], (60, "b"), "mark 2 is a second pause"),
        ([(1, "pause", 20, "b"), (3, "resume", 30, "b")], (60, "b"), "mark 2 has sequence 3"),
    ],
)  # fmt: skip
def test_p09_active_time(marks: list[Mark], end: tuple[int, str], wanted: int | str) -> None:
    session = ReviewSession(
        format="roundkit-review-session/1", packet_sha256="0" * 64, reviewer="r", started_utc=_NOW,
        started_ns=10 * _MS, boot_id="b",
    )  # fmt: skip
    made = [
        ReviewMark.model_validate(
            {"sequence": number, "mark": mark, "at_utc": _NOW, "at_ns": at * _MS, "boot_id": boot}
        )
        for number, mark, at, boot in marks
    ]
    found = active_time(session, made, ClockReading(end[0] * _MS, end[1], _NOW))
    assert (found.active_ms if isinstance(wanted, int) else found.unclear) == wanted
    assert (found.active_ms is None) is not (found.unclear is None)
