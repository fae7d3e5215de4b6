"""A person's part in a paired pilot: blinded reviews and recorded interventions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from roundkit.models.base import Count, Digest, Record, UtcTime

InterventionKind = Literal[
    "clarification", "environment-repair", "permission-granted", "restart", "stopped-early", "other"
]
"""What somebody did to a running trial; ``other`` needs a note."""


class Intervention(Record):
    """One line of ``interventions.jsonl``.

    Attributes:
        sequence: From 1, without a gap.
        at_utc: Host time.
        note: What was done.
    """

    sequence: Annotated[int, Field(ge=1)]
    at_utc: UtcTime
    kind: InterventionKind
    by: Annotated[str, Field(min_length=1, max_length=200)]
    note: Annotated[str, Field(max_length=2000)]


class PacketFile(Record):
    """One file that a reviewer sees, with its digest."""

    name: str
    sha256: Digest
    size: Count


class ReviewPacket(Record):
    """``packet.json``: what a reviewer sees; it names neither variant, model, harness nor runner.

    Attributes:
        code: A name of the packet that tells nothing.
        rubric_sha256: Digest of the task's rubric.
        files: The candidate's diff, the rubric, and fingerprints of the evidence.
    """

    format: Literal["roundkit-review-packet/1"]
    code: str
    candidate_sha256: Digest
    diff_sha256: Digest
    rubric_sha256: Digest
    files: tuple[PacketFile, ...]


class ReviewSession(Record):
    """``session.json``, written exclusively when a review starts.

    Attributes:
        packet_sha256: Digest of the packet.
        reviewer: The reviewer's id.
        started_utc: Host time.
        started_ns: The host's monotonic clock, since its start.
        boot_id: Which start of the host that is.
    """

    format: Literal["roundkit-review-session/1"]
    packet_sha256: Digest
    reviewer: Annotated[str, Field(min_length=1, max_length=200)]
    started_utc: UtcTime
    started_ns: Count
    boot_id: str


class ReviewMark(Record):
    """One line of ``marks.jsonl``: a break begins or ends."""

    sequence: Annotated[int, Field(ge=1)]
    mark: Literal["pause", "resume"]
    at_utc: UtcTime
    at_ns: Count
    boot_id: str


class Review(Record):
    """``review.json``, written exclusively when a review ends.

    Attributes:
        method: ``timed``: between host clocks; ``stated``: a person named the duration, which is readable
            and never eligible.
        packet_sha256: Digest of the packet that was reviewed.
        session_sha256: Digest of the session; null for a stated one.
        marks_sha256: Digest of the marks' bytes; null where there were none.
        active_ms: Active time, breaks left out.
        blinded: The reviewer's word that nothing told which variant it was.
        judgement: What the reviewer found, by the rubric.
    """

    format: Literal["roundkit-review/1"]
    method: Literal["timed", "stated"]
    packet_sha256: Digest
    session_sha256: Digest | None
    marks_sha256: Digest | None
    reviewer: Annotated[str, Field(min_length=1, max_length=200)]
    finished_utc: UtcTime
    finished_ns: Count | None
    active_ms: Count
    blinded: bool
    judgement: Literal["accept", "reject", "unsure"]
    note: Annotated[str, Field(max_length=10_000)] = ""
