"""A blinded review from start to end: an immutable session, breaks as marks, a duration from host clocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import host_clock, now_utc
from roundkit.core.errors import Refused, RoundkitError, refuse
from roundkit.core.lines import append_line, create_exclusively, held_lines
from roundkit.evidence import pilot_layout
from roundkit.evidence.pilot_reader import PilotReader
from roundkit.models.pilot_review import Judgement, Review, ReviewMark, ReviewSession
from roundkit.pilots.packet import Packet, all_packets, find_packet, make_packet
from roundkit.pilots.words import stated
from roundkit.rules.pilot_clock import ClockReading, active_time
from roundkit.rules.pilot_lines import LinesProblem, read_lines

MAX_MARKS_BYTES = 1 << 20
_MS_IN_MINUTE = 60_000
Clock = Callable[[], tuple[int, str]]
State = Literal["not-started", "running", "paused", "finished"]


@dataclass(frozen=True)
class ReviewState:
    """How a review stands.

    Attributes:
        state: ``not-started``, ``running``, ``paused`` or ``finished``.
        session: Its session; null before.
        marks: Its breaks.
        review: What it ended with; null before.
    """

    state: State
    session: ReviewSession | None
    marks: tuple[ReviewMark, ...]
    review: Review | None


def open_packet(pilot: Path, tuple_or_code: str) -> Packet:
    """Return a packet by its code, or a tuple's, which is written where there is none yet.

    Raises:
        Refused: as :func:`roundkit.pilots.packet.find_packet` and :func:`roundkit.pilots.packet.make_packet`.
    """
    if tuple_or_code.startswith("packet-"):
        return find_packet(pilot, tuple_or_code)
    return make_packet(pilot, tuple_or_code)


def read_state(packet: Packet) -> ReviewState:
    """Return how a packet's review stands.

    Raises:
        Refused: a file of it is damaged (``bad-review``).
    """
    folder = PilotReader(packet.pilot)
    session, review = None, None
    if _there(packet, pilot_layout.SESSION):
        session = folder.record(f"{packet.review}/{pilot_layout.SESSION}", ReviewSession)
    if _there(packet, pilot_layout.FINISHED):
        review = folder.record(f"{packet.review}/{pilot_layout.FINISHED}", Review)
    marks = _marks(folder.read(f"{packet.review}/{pilot_layout.MARKS}")) if session is not None else ()
    state: State = (
        "finished" if review else "not-started" if not session else "paused" if len(marks) % 2 else "running"
    )
    return ReviewState(state, session, marks, review)


def start_review(packet: Packet, reviewer: str, *, clock: Clock = host_clock) -> ReviewSession:
    """Begin a review: its clock runs from now on.

    Raises:
        Refused: ``started-already``; ``finished-already``; ``reviewing-already``: the reviewer's time runs
            for another packet.
    """
    if _there(packet, pilot_layout.FINISHED):
        raise _finished(packet)
    _refuse_two_at_once(packet, reviewer)
    at_ns, boot_id = clock()
    with stated():
        session = ReviewSession(
            format="roundkit-review-session/1",
            packet_sha256=packet.sha256,
            reviewer=reviewer,
            started_utc=now_utc(),
            started_ns=at_ns,
            boot_id=boot_id,
        )
    try:
        create_exclusively(packet.pilot / packet.review / pilot_layout.SESSION, session.to_bytes())
        create_exclusively(packet.pilot / packet.review / pilot_layout.MARKS)
    except Refused as refused:
        raise refuse(
            "started-already",
            f"the review of {packet.code} was started already",
            place="review",
            remedy="finish it; a session is never begun twice",
        ) from refused
    return session


def mark_review(packet: Packet, mark: Literal["pause", "resume"], *, clock: Clock = host_clock) -> ReviewMark:
    """Mark that a break begins or ends.

    Raises:
        Refused: ``not-started``, ``finished-already``, ``paused-already``, ``not-paused``, ``bad-review``, or
            ``reviewing-already``, as at a start.
    """
    session, _ = _require_session(packet)
    if mark == "resume":
        _refuse_two_at_once(packet, session.reviewer)
    made: list[ReviewMark] = []

    def line(known: bytes) -> bytes:
        if _there(packet, pilot_layout.FINISHED):
            raise _finished(packet)
        marks = _marks(known)
        if (len(marks) % 2 == 1) == (mark == "pause"):
            code = "paused-already" if mark == "pause" else "not-paused"
            raise refuse(code, f"the review of {packet.code} is {code.replace('-', ' ')}", place="review")
        at_ns, boot_id = clock()
        made.append(
            ReviewMark(sequence=len(marks) + 1, mark=mark, at_utc=now_utc(), at_ns=at_ns, boot_id=boot_id)
        )
        return made[-1].to_bytes()

    append_line(packet.pilot, f"{packet.review}/{pilot_layout.MARKS}", line, limit=MAX_MARKS_BYTES)
    return made[-1]


def finish_review(
    packet: Packet,
    *,
    reviewer: str,
    blinded: bool,
    judgement: Judgement,
    note: str = "",
    packet_sha256: str | None = None,
    clock: Clock = host_clock,
) -> Review:
    """End a review; its active time follows from the host's clocks, or is unknown with the reason.

    Args:
        packet: The packet, opened anew, so that a stale one was refused.
        reviewer: Who reviewed; the one who began.
        blinded: Whether the reviewer attests that nothing told which variant it was.
        judgement: What was found, by the rubric.
        note: More about it.
        packet_sha256: Digest of the packet that the reviewer saw, where it is told.
        clock: Gives the host's monotonic clock and which start of the host it counts from.

    Raises:
        Refused: ``not-started``, ``finished-already``, ``wrong-digest``, ``other-reviewer``, ``bad-review``.
    """
    session, session_data = _require_session(packet)
    if packet.sha256 not in {session.packet_sha256} & {packet_sha256 or packet.sha256}:
        raise refuse(
            "wrong-digest",
            f"the packet has digest {packet.sha256}, the review began with {session.packet_sha256}"
            + (f" and is to end with {packet_sha256}" if packet_sha256 else ""),
            place="review",
            remedy="finish the review of the packet that it began with",
        )
    if reviewer != session.reviewer:
        raise refuse("other-reviewer", f"{reviewer!r} did not begin this review", place="--reviewer")
    with held_lines(packet.pilot, f"{packet.review}/{pilot_layout.MARKS}", limit=MAX_MARKS_BYTES) as marks:
        at_ns, boot_id = clock()
        end = ClockReading(at_ns, boot_id, now_utc())
        time = active_time(session, _marks(marks), end)
        with stated():
            review = Review(
                format="roundkit-review/1",
                method="timed",
                packet_sha256=packet.sha256,
                session_sha256=digest_bytes(session_data),
                marks_sha256=digest_bytes(marks),
                reviewer=reviewer,
                finished_utc=end.utc,
                finished_ns=at_ns,
                boot_id=boot_id,
                active_ms=time.active_ms,
                unclear=time.unclear,
                blinded=blinded,
                judgement=judgement,
                note=note,
            )
        _write(packet, review)
    return review


def record_review(
    packet: Packet, *, reviewer: str, minutes: float, blinded: bool, judgement: Judgement, note: str = ""
) -> Review:
    """Record a review whose duration a person states: it is readable, and never eligible.

    Raises:
        Refused: ``started-already`` where it is being timed; ``finished-already``.
    """
    if _there(packet, pilot_layout.SESSION):
        raise refuse(
            "started-already",
            f"the review of {packet.code} is being timed",
            place="review",
            remedy="finish it with `roundkit pilot review finish`",
        )
    with stated():
        review = Review(
            format="roundkit-review/1",
            method="stated",
            packet_sha256=packet.sha256,
            session_sha256=None,
            marks_sha256=None,
            reviewer=reviewer,
            finished_utc=now_utc(),
            finished_ns=None,
            boot_id=None,
            active_ms=round(minutes * _MS_IN_MINUTE),
            unclear=None,
            blinded=blinded,
            judgement=judgement,
            note=note,
        )
    _write(packet, review)
    return review


def _refuse_two_at_once(packet: Packet, reviewer: str) -> None:
    """Refuse a second review of one reviewer while the first one's time runs: it would count twice."""
    for other in all_packets(packet.pilot):
        if other.code == packet.code:
            continue
        try:
            found = read_state(other)
        except Refused:
            continue  # damaged: it counts for nothing
        if found.state == "running" and found.session is not None and found.session.reviewer == reviewer:
            raise refuse(
                "reviewing-already",
                f"the time of {reviewer!r} runs for {other.code}",
                place="review",
                remedy=f"finish or pause it first: roundkit pilot review pause PILOT_DIR {other.code}",
            )


def _there(packet: Packet, name: str) -> bool:
    path = packet.pilot / packet.review / name
    return path.exists() or path.is_symlink()


def _write(packet: Packet, review: Review) -> None:
    try:
        create_exclusively(packet.pilot / packet.review / pilot_layout.FINISHED, review.to_bytes())
    except Refused as refused:
        raise _finished(packet) from refused


def _finished(packet: Packet) -> RoundkitError:
    return refuse(
        "finished-already",
        f"the review of {packet.code} has ended",
        place="review",
        remedy="leave it as it is; a review ends once",
    )


def _require_session(packet: Packet) -> tuple[ReviewSession, bytes]:
    name = f"{packet.review}/{pilot_layout.SESSION}"
    if not _there(packet, pilot_layout.SESSION):
        raise refuse(
            "not-started",
            f"the review of {packet.code} was never started",
            place="review",
            remedy="roundkit pilot review start",
        )
    folder = PilotReader(packet.pilot)
    return folder.record(name, ReviewSession), folder.read(name)


def _marks(data: bytes) -> tuple[ReviewMark, ...]:
    try:
        return read_lines(data, ReviewMark, name=pilot_layout.MARKS)
    except LinesProblem as problem:
        raise refuse(
            "bad-review",
            str(problem),
            place="review",
            remedy="leave it as it is: this observation stays ineligible",
        ) from problem
