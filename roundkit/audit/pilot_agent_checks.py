"""The checks of a paired pilot's agents and reviews: records that contradict themselves or their archive."""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.pilot_material import PilotMaterial, read_or_none
from roundkit.audit.pilot_packet_checks import packet_problems
from roundkit.audit.pilot_time_checks import duration_problems, review_problems, set_during
from roundkit.audit.pilot_usage_checks import read_again, usage_problems, whole_stream
from roundkit.evidence import pilot_layout as layout
from roundkit.models.agent_run import AgentRun, LogDigest
from roundkit.models.pilot_cohort import Observation
from roundkit.models.pilot_trial import TrialRecord, TrialStart
from roundkit.rules.pilot_outcome import process_outcome

_REVIEW = tuple(
    f"{layout.REVIEW}/{name}" for name in (layout.PACKET, layout.SESSION, layout.MARKS, layout.FINISHED)
)
"""In the order in which they are written."""


def check_agents(material: PilotMaterial) -> list[Check]:
    """Check how each agent is said to have ended, and what it said, against its record and the archive."""
    count = sum(row.agent is not None for row in material.cohort.observations)
    agreed = f"{count} agents, each with its streams and times; {read_again(material)}"
    return conclude("agents", _agent_problems(material), agreed)


def check_reviews(material: PilotMaterial) -> list[Check]:
    """Check that nothing of a review is gone, and that none contradicts itself."""
    rows = material.cohort.observations
    found = [problem for row in rows for problem in (*_review_problems(row), *review_problems(material, row))]
    found += packet_problems(material)
    count = sum(row.review is not None for row in material.cohort.observations)
    return conclude("reviews", found, f"{count} reviews, each with everything that it began with")


def _agent_problems(material: PilotMaterial) -> Iterator[Disagreement]:
    for row in material.cohort.observations:
        record = row.record
        if record is None:
            continue
        if (record.agent is None) != (record.wall_ms is None):
            yield Disagreement(row.tuple_id, "an agent without its time, or a time without an agent")
        if (record.acceptance is None) != (record.validation_ms is None):
            yield Disagreement(row.tuple_id, "an acceptance without its time, or a time without one")
        start = read_or_none(material.reader, f"{row.folder}/{layout.START}", TrialStart)
        problems = duration_problems(material.plan, start, record)
        yield from (Disagreement(row.tuple_id, problem) for problem in problems)
        yield from (Disagreement(row.tuple_id, problem) for problem in _process_problems(record))
        if record.agent is not None:
            yield from (
                Disagreement(row.tuple_id, problem) for problem in _run_problems(record, record.agent)
            )
            if not set_during(start, record) and not _is_ordered(record, record.agent):
                yield Disagreement(row.tuple_id, "its agent did not run between its start and its end")
            stream = whole_stream(material, row)
            if stream is not None:
                problems = usage_problems(material.plan.model, record.agent, stream)
                yield from (Disagreement(row.tuple_id, problem) for problem in problems)


def _process_problems(record: TrialRecord) -> Iterator[str]:
    """Yield ends that no runner writes down for an attempt that was interrupted, or a gateway that broke."""
    if record.ended_utc is None and record.process != "aborted":
        yield f"its process is {record.process}, and nobody knows when it ended"
    if record.agent is None:
        return
    process, detail = process_outcome(record.agent, None)
    if record.process == "aborted":
        yield "it was aborted, and its agent came to its end"
    elif record.process != process and not record.detail:
        yield f"its process is {record.process}, its agent's end {process}, and nothing says why"
    elif record.process == process != "error" and record.detail != detail:
        yield f"it says of its end: {record.detail!r}, and its agent: {detail!r}"


def _run_problems(record: TrialRecord, agent: AgentRun) -> Iterator[str]:
    process, _ = process_outcome(agent, None)
    # Whatever its agent did, a trial is an error where the gateway or the runner broke.
    if record.process not in {process, "error", "aborted"}:
        yield f"its process is {record.process}, and its agent's end {process}"
    if agent.end_reason == "exited" and agent.exit_code is None:
        yield "its agent ended by itself and has no exit code"
    files = {file.path: file for file in record.files}
    for name, log in ((layout.STDOUT, agent.stdout), (layout.STDERR, agent.stderr)):
        kept = files.get(name)
        if kept is not None and kept.size != _size(name, log, kept.size):
            yield f"{name} has {kept.size} bytes, the record says {log.kept_bytes}"
        if log.kept_bytes > log.bytes or (name in record.truncated) != (log.kept_bytes < log.bytes):
            yield f"{name} is cut off, or said to be, where it is not"
    whole = files.get(layout.STDOUT)
    is_whole = whole is not None and agent.stdout.kept_bytes == agent.stdout.bytes
    if whole is not None and is_whole and whole.sha256 != agent.stdout.sha256:
        yield f"{layout.STDOUT} is not the stream of which the record has the digest"


def _is_ordered(record: TrialRecord, agent: AgentRun) -> bool:
    moments = [record.started_utc, agent.started_utc, agent.ended_utc]
    moments += [record.ended_utc] if record.ended_utc is not None else []
    return moments == sorted(moments)


def _size(name: str, log: LogDigest, stands: int) -> int:
    """Return the size of a stream's file by its record; what is no text is longer in standard error."""
    if name == layout.STDOUT:
        return log.kept_bytes + len(log.notice.encode())
    return stands if log.kept_bytes == log.bytes <= stands else log.kept_bytes


def _review_problems(row: Observation) -> Iterator[Disagreement]:
    files, review = row.files, row.review
    if files is None:
        return
    there = [name for name in _REVIEW if files.get(name).problem != "missing-file"]
    stated = review is not None and review.method == "stated"
    wanted = _REVIEW[: _REVIEW.index(there[-1])] if there else ()
    for name in wanted:
        if name not in there and not (stated and name in _REVIEW[1:3]):
            yield Disagreement(f"{row.folder}/{name}", f"is gone, and {there[-1]} is there")
    for item in row.eligibility.items:
        packet = f"missing: {layout.REVIEW}/{layout.PACKET_FILES}/"
        if item.reason is not None and item.reason.startswith(packet):
            yield Disagreement(
                row.tuple_id, f"{item.reason.removeprefix('missing: ')}, and its packet lists it"
            )
    if review is None:
        return
    if (review.active_ms is None) != (review.unclear is not None):
        yield Disagreement(row.tuple_id, "its review has a time and says why not, or neither")
    unclear = [item.reason for item in row.eligibility.items if (item.reason or "").startswith("clock")]
    if unclear and review.active_ms is not None:
        yield differs(row.tuple_id, "its review's time", f"{review.active_ms} ms", unclear[0])
