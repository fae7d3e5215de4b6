"""The checks of a paired pilot's times: attempts one after the other, each in its time and authorized."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from roundkit.audit.findings import Disagreement, differs
from roundkit.audit.pilot_material import PilotMaterial, read_or_none
from roundkit.core.clock import MS_IN_S
from roundkit.evidence import pilot_layout as layout
from roundkit.models.clocks import ClockPair
from roundkit.models.pilot_cohort import Observation
from roundkit.models.pilot_plan import PairedPlan
from roundkit.models.pilot_review import ReviewMark, ReviewSession
from roundkit.models.pilot_trial import TrialRecord, TrialStart
from roundkit.rules.clock_pairs import no_durations
from roundkit.rules.pilot_authority import pilot_refusal
from roundkit.rules.pilot_clock import ClockReading, active_time
from roundkit.rules.pilot_lines import LinesProblem, read_lines

_CLOCK = timedelta(seconds=1)
"""What the clock of dates may be set back by itself, or be off over a trial against the one that counts.

Dates decide alone where the other clock was not read.
"""
_MADE_READY = timedelta(minutes=1)
"""Between the look at an authorization and the start of an attempt, its agent is made ready."""
_OF_ANOTHER_HOST = timedelta(minutes=1)
_ENDED_WITHIN_S = 60.0
"""The last of an agent is gone so soon after its deadline, and after a call that is going on."""


@dataclass(frozen=True)
class _Moment:
    """A date, and the same on both clocks where they were read."""

    utc: datetime
    clock: ClockPair | None = None

    def is_before(self, other: _Moment) -> bool:
        """Say whether it is before another one, although it comes after that."""
        by_date = self.utc < other.utc - _CLOCK
        mine, theirs = self.clock, other.clock
        if mine is None or theirs is None or mine.utc != self.utc or theirs.utc != other.utc:
            return by_date
        if mine.boot_id != theirs.boot_id:
            return False  # a host that was started anew may have another date
        return mine.to_us < theirs.from_us


def order_problems(material: PilotMaterial) -> Iterator[Disagreement]:
    """Yield attempts that begin before the plan was frozen, or before the one before them had ended.

    Where both clocks were read, the one that nobody sets decides: dates go back where somebody set the other.
    """
    before = _Moment(material.plan.frozen_utc)
    for folder, start, record in _made(material):
        started = _Moment(start.started_utc, start.started_clock)
        ended = None
        if record is not None and record.ended_utc is not None:
            ended = _Moment(record.ended_utc, record.ended_clock)
        for moment, name in ((started, layout.START), (ended, layout.RECORD)):
            if moment is not None and moment.clock is not None and moment.clock.utc != moment.utc:
                yield differs(f"{folder}/{name}", "both clocks' date", moment.clock.utc, moment.utc)
        if started.is_before(before):
            said = f"was started at {start.started_utc}, and what is before it was at {before.utc}"
            yield Disagreement(f"{folder}/{layout.START}", f"{said}: a clock was set, or one is forged")
        before = started if ended is None or ended.is_before(started) else ended


def authority_problems(material: PilotMaterial) -> Iterator[Disagreement]:
    """Yield attempts that their plan's authorization, and what was spent before them, did not allow."""
    records: list[TrialRecord | None] = []
    for folder, start, record in _made(material):
        refusal = pilot_refusal(material.plan, records, start.started_utc - _MADE_READY)
        if refusal is not None:
            yield Disagreement(f"{folder}/{layout.START}", f"[{refusal.code}] {refusal.message}")
        records.append(record)


def set_during(start: TrialStart | None, record: TrialRecord) -> bool:
    """Say whether the clock of dates was set between a trial's start and its end, as its clocks tell."""
    clocks = None if start is None else start.started_clock, record.ended_clock
    return None not in clocks and no_durations(clocks) is not None


def duration_problems(plan: PairedPlan, start: TrialStart | None, record: TrialRecord) -> Iterator[str]:
    """Yield durations of a trial that its own start and end, or its deadline, contradict."""
    took_ms = (record.wall_ms or 0) + (record.validation_ms or 0)
    if record.ended_utc is not None:
        room = record.ended_utc - record.started_utc
        if start is not None and start.started_clock is not None and record.ended_clock is not None:
            room = timedelta(microseconds=record.ended_clock.to_us - start.started_clock.from_us)
        room_ms = round((room + _CLOCK).total_seconds() * MS_IN_S)
        if took_ms > room_ms:
            yield f"its agent and its checks took {took_ms} ms, and all of it at most {room_ms} ms"
    if record.agent is None or record.wall_ms is None:
        return
    policy, wall_s = plan.policy, record.wall_ms / MS_IN_S
    if record.agent.end_reason == "deadline" and round(policy.trial_s * MS_IN_S) > record.wall_ms:
        yield f"its agent was ended at its deadline after {wall_s} s, and had {policy.trial_s} s"
    most_s = policy.trial_s + policy.call_s + _ENDED_WITHIN_S
    if wall_s > most_s:
        yield f"its agent took {wall_s} s, and was to be ended within {most_s} s"


def replay_problems(row: Observation) -> Iterator[Disagreement]:
    """Yield replays from before there was anything to decide again."""
    ended = None if row.record is None else row.record.ended_utc
    for replay in row.replays:
        if ended is not None and replay.replayed_utc < ended - _OF_ANOTHER_HOST:
            yield differs(row.tuple_id, "replayed_utc", replay.replayed_utc, f"after {ended}")


def review_problems(material: PilotMaterial, row: Observation) -> Iterator[Disagreement]:
    """Yield a review that has a time which its own clocks do not give.

    Whoever ends a review holds its two clocks against each other, so that no honest one is named here.
    """
    review, folder = row.review, f"{row.folder}/{layout.REVIEW}"
    session = read_or_none(material.reader, f"{folder}/{layout.SESSION}", ReviewSession)
    if session is None or review is None or review.finished_ns is None or review.boot_id is None:
        return
    data = material.reader.artifact(folder, layout.MARKS).data or b""
    try:
        marks = read_lines(data, ReviewMark, name=layout.MARKS)
    except LinesProblem:
        return  # eligibility says so
    end = ClockReading(review.finished_ns, review.boot_id, review.finished_utc)
    time = active_time(session, marks, end)
    if time.unclear is not None and review.active_ms is not None:
        place = f"{folder}/{layout.FINISHED}"
        yield differs(place, "its review's time", f"{review.active_ms} ms", time.unclear)


def _made(material: PilotMaterial) -> Iterator[tuple[str, TrialStart, TrialRecord | None]]:
    """Yield the attempts in the order in which they were made, as far as they hang together."""
    reader = material.reader
    folders = {
        folder.rpartition("/")[2]: folder for folder in (*reader.trial_folders(), *reader.setup_folders())
    }
    for name in material.chain.order:
        folder = folders[name]
        start = read_or_none(reader, f"{folder}/{layout.START}", TrialStart)
        if start is not None:
            yield folder, start, read_or_none(reader, f"{folder}/{layout.RECORD}", TrialRecord)
