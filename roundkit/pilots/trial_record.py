"""The record of an attempt, written once, whatever came of it; also of one whose runner died."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from roundkit.core.files import write_new
from roundkit.evidence import pilot_layout as layout
from roundkit.models.agent_run import AgentRun
from roundkit.models.clocks import ClockPair
from roundkit.models.pilot_plan import PairedPlan
from roundkit.models.pilot_trial import Acceptance, GatewayCall, ProcessOutcome, TrialRecord, TrialStart
from roundkit.pilots.archive import archived_files, settle
from roundkit.pilots.folder import TrialPlace, read_model


@dataclass(frozen=True)
class Course:
    """How an attempt went; what is null was not measured.

    Attributes:
        process: How its agent ended.
        detail: One line more about that.
        agent: The agent's run.
        wall_ms: Host time of the agent.
        validation_ms: Host time of all checks.
        acceptance: What the checks say.
        truncated: Streams of the archive, and its candidate, that were cut off.
    """

    process: ProcessOutcome
    detail: str
    agent: AgentRun | None = None
    wall_ms: int | None = None
    validation_ms: int | None = None
    acceptance: Acceptance | None = None
    truncated: tuple[str, ...] = ()


def write_record(
    plan: PairedPlan,
    place: TrialPlace,
    course: Course,
    started_utc: datetime,
    ended_utc: datetime | None,
    ended_clock: ClockPair | None = None,
) -> TrialRecord:
    """Write an attempt's record, which binds every file that is fixed in its folder.

    Args:
        plan: The frozen plan.
        place: The attempt.
        course: How it went.
        started_utc: When its slot was used.
        ended_utc: When it ended; null where nobody knows.
        ended_clock: That moment on both of the host's clocks; null where the host has but one.

    Raises:
        FileExistsError: it has one.
        OSError: a file cannot be read or written.
    """
    truncated = course.truncated
    if (place.path / layout.CANDIDATE).is_dir() and settle(place.path / layout.CANDIDATE):
        truncated = (*truncated, layout.CANDIDATE)
    codes = _exit_codes(place)
    record = TrialRecord(
        format="roundkit-pilot-trial/1",
        plan_sha256=plan.digest(),
        tuple_id=place.tuple_id,
        order=None if place.slot is None else place.slot.order,
        attempt=place.attempt,
        provenance=plan.provenance,
        started_utc=started_utc,
        ended_utc=ended_utc,
        ended_clock=ended_clock,
        process=course.process,
        detail=course.detail,
        agent=course.agent,
        calls=len(codes),
        failed_calls=sum(code != 0 for code in codes),
        wall_ms=course.wall_ms,
        validation_ms=course.validation_ms,
        acceptance=course.acceptance,
        truncated=truncated,
        files=archived_files(place.path),
    )
    write_new(place.path / layout.RECORD, record.to_bytes())
    return record


def abandon(plan: PairedPlan, place: TrialPlace) -> TrialRecord:
    """Record an attempt whose runner died; everything of it stays as it is, and it is not run again.

    Raises:
        FileExistsError: it has a record.
    """
    start = read_model(place.path / layout.START, TrialStart)
    changed = datetime.fromtimestamp(place.path.stat().st_mtime, UTC)
    course = Course("aborted", "its runner ended before it did")
    return write_record(plan, place, course, changed if start is None else start.started_utc, None)


def _exit_codes(place: TrialPlace) -> list[int | None]:
    """Return the exit code of every call that was recorded whole."""
    try:
        rows = (place.path / layout.CALLS).read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    return [GatewayCall.from_bytes(row, place=layout.CALLS).exit_code for row in rows]
