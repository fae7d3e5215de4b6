"""A reviewer's time counts once: reviews that one person made at the same time have none of their own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from roundkit.models.pilot_evidence import TrialFiles
from roundkit.models.pilot_review import Review, ReviewMark, ReviewSession
from roundkit.models.pilot_trial import Eligibility, ItemResult
from roundkit.rules.pilot_lines import read_lines
from roundkit.rules.pilot_reading import parsed, raw
from roundkit.rules.pilot_review_checks import FINISHED, MARKS, SESSION


@dataclass(frozen=True)
class Span:
    """Active time of one review, from a beginning or resumption to a pause or the end.

    Attributes:
        boot_id: Which start of the host the clock counts from.
        from_ns: That clock at its beginning.
        to_ns: The clock at its end.
        from_s: The same beginning as a date, in seconds since 1970, for what another host timed.
        to_s: Its end.
    """

    boot_id: str
    from_ns: int
    to_ns: int
    from_s: float
    to_s: float

    def overlaps(self, other: Span) -> bool:
        """Say whether both were active at one moment."""
        if self.boot_id == other.boot_id:
            return self.from_ns < other.to_ns and other.from_ns < self.to_ns
        return self.from_s < other.to_s and other.from_s < self.to_s


def count_once(pairs: Sequence[tuple[Eligibility, TrialFiles]]) -> list[Eligibility]:
    """Take the review time from every observation whose reviewer reviewed another one at that time.

    Nobody can say how such time is to be shared out, so neither of the two has any.

    Args:
        pairs: Every observation's eligibility by itself, with the files that it was decided on.
    """
    timed = [
        (number, *_timed(files)) for number, (each, files) in enumerate(pairs) if each.active_ms is not None
    ]
    decided = [each for each, _ in pairs]
    for (one, reviewer, spans), (other, other_reviewer, others) in itertools.permutations(timed, 2):
        if reviewer == other_reviewer and any(a.overlaps(b) for a, b in itertools.product(spans, others)):
            decided[one] = _without_time(pairs[one][0], pairs[other][0].tuple_id)
    return decided


def spans_of(session: ReviewSession, marks: Sequence[ReviewMark], review: Review) -> list[Span]:
    """Return when a timed review was active."""
    end_ns = session.started_ns if review.finished_ns is None else review.finished_ns
    moments = [
        (session.started_ns, session.started_utc.timestamp()),
        *((mark.at_ns, mark.at_utc.timestamp()) for mark in marks),
        (end_ns, review.finished_utc.timestamp()),
    ]
    return [
        Span(session.boot_id, from_ns, to_ns, from_s, to_s)
        for (from_ns, from_s), (to_ns, to_s) in itertools.pairwise(moments)
    ][::2]


def _timed(files: TrialFiles) -> tuple[str, list[Span]]:
    """Return who reviewed, and when; only of what counted, so that all of it can be read."""
    session = parsed(raw(files, SESSION), SESSION, ReviewSession)
    review = parsed(raw(files, FINISHED), FINISHED, Review)
    marks = read_lines(raw(files, MARKS), ReviewMark, name=MARKS)
    return session.reviewer, spans_of(session, marks, review)


def _without_time(each: Eligibility, other: str) -> Eligibility:
    reason = f"overlapping: its reviewer reviewed {other} at the same time"
    items = tuple(
        ItemResult(item=item.item, reason=reason) if item.item == "review" else item for item in each.items
    )
    return each.model_copy(update={"items": items, "active_ms": None})
