"""Whether a blinded review counts: packet, session, marks and end bind one another and the candidate."""

from __future__ import annotations

from roundkit.core.canonical import digest_bytes
from roundkit.models.pilot_plan import FrozenTask
from roundkit.models.pilot_review import Review, ReviewMark, ReviewPacket, ReviewSession
from roundkit.rules.pilot_clock import ClockReading, active_time
from roundkit.rules.pilot_lines import LinesProblem, read_lines
from roundkit.rules.pilot_reading import Bound, Ineligible, parsed, raw

PACKET, SESSION, MARKS, FINISHED = (
    f"review/{name}" for name in ("packet.json", "session.json", "marks.jsonl", "review.json")
)
PACKET_FILES = "review/packet"


def reviewed_ms(trial: Bound, task: FrozenTask) -> int:
    """Return a trial's active review time in milliseconds.

    Raises:
        Ineligible: something of the review is missing, was changed, is out of order, was only stated, or was
            not blinded.
    """
    packet_data = raw(trial.files, PACKET)
    check_packet(trial, task, parsed(packet_data, PACKET, ReviewPacket))
    if trial.files.get(SESSION).problem == "missing-file" and _is_stated(trial):
        raise Ineligible("stated", "the review's duration was stated by a person, not timed")
    session_data = raw(trial.files, SESSION)
    session = parsed(session_data, SESSION, ReviewSession)
    review = parsed(raw(trial.files, FINISHED), FINISHED, Review)
    if review.method != "timed":
        raise Ineligible("stated", "the review's duration was stated by a person, not timed")
    marks_data = raw(trial.files, MARKS)
    _check_binding(review, session, packet_data, session_data, marks_data)
    if trial.record.ended_utc is not None and session.started_utc < trial.record.ended_utc:
        raise Ineligible("out-of-order", "the review began before the trial had ended")
    if review.finished_ns is None or review.boot_id is None:
        raise Ineligible("malformed", f"{FINISHED} is timed and has no clock")
    end = ClockReading(review.finished_ns, review.boot_id, review.finished_utc)
    time = active_time(session, _marks(marks_data), end)
    if time.active_ms is None:
        raise Ineligible("clock", time.unclear or "")
    if review.active_ms != time.active_ms:
        raise Ineligible(
            "disagrees", f"{FINISHED} says {review.active_ms} ms, its clocks give {time.active_ms} ms"
        )
    if not review.blinded:
        raise Ineligible("not-blinded", "the reviewer did not attest to have been blinded")
    return time.active_ms


def check_packet(trial: Bound, task: FrozenTask, packet: ReviewPacket) -> None:
    """Check that a packet is about this trial's candidate, and that its files are still those it lists.

    Raises:
        Ineligible: it is about another candidate or rubric, or a file of it was changed.
    """
    if packet.candidate_sha256 != trial.files.candidate_sha256:
        raise Ineligible("substituted", "the packet is about another candidate than the archived one")
    if packet.diff_sha256 != digest_bytes(trial.data("candidate.diff")):
        raise Ineligible("substituted", "the packet shows another diff than the archived one")
    if packet.rubric_sha256 != task.rubric_sha256:
        raise Ineligible("substituted", "the packet has another rubric than the frozen one")
    for entry in packet.files:
        name = f"{PACKET_FILES}/{entry.name}"
        data = raw(trial.files, name)
        if len(data) != entry.size or digest_bytes(data) != entry.sha256:
            raise Ineligible("substituted", f"{name} is not the file that the packet lists")
    shown = {entry.name: entry.sha256 for entry in packet.files}
    if shown.get("candidate.diff") != packet.diff_sha256 or shown.get("rubric.md") != packet.rubric_sha256:
        raise Ineligible("disagrees", "the packet lists another diff or rubric than it names")


def _is_stated(trial: Bound) -> bool:
    return parsed(raw(trial.files, FINISHED), FINISHED, Review).method == "stated"


def _check_binding(
    review: Review, session: ReviewSession, packet: bytes, session_data: bytes, marks: bytes
) -> None:
    if session.packet_sha256 != digest_bytes(packet):
        raise Ineligible("substituted", "the session began with another packet")
    if review.packet_sha256 != digest_bytes(packet):
        raise Ineligible("substituted", "the review ended with another packet")
    if review.session_sha256 != digest_bytes(session_data):
        raise Ineligible("substituted", "the review ended another session")
    if review.marks_sha256 != digest_bytes(marks):
        raise Ineligible("substituted", "the marks are not those that the review ended with")
    if review.reviewer != session.reviewer:
        raise Ineligible("disagrees", "another reviewer ended the review than began it")


def _marks(data: bytes) -> tuple[ReviewMark, ...]:
    try:
        return read_lines(data, ReviewMark, name=MARKS)
    except LinesProblem as problem:
        raise Ineligible("malformed", str(problem)) from problem
