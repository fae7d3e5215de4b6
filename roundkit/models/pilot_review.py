"""A person's part in a paired pilot: blinded reviews and recorded interventions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from roundkit.models.base import Count, Digest, Record, UtcTime

InterventionKind = Literal[
    "clarification", "environment-repair", "permission-granted", "restart", "stopped-early", "other"
]
"""What somebody did to a running trial; ``other`` needs a note."""

PacketCode = Annotated[str, StringConstraints(pattern=r"^packet-[0-9a-f]{8}$")]
"""What a reviewer calls a packet; drawn by chance, so that it tells nothing."""

Judgement = Literal["accept", "reject", "unsure"]


class Intervention(Record):
    """One line of ``interventions.jsonl``.

    Attributes:
        sequence: From 1, without a gap.
        before_sha256: Digest of all bytes of the ledger before this line, so that no earlier line can change.
        at_utc: Host time.
        by: Who did it.
        note: What was done.
    """

    sequence: Annotated[int, Field(ge=1)]
    before_sha256: Digest
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
        candidate_sha256: Tree digest of the candidate.
        diff_sha256: Digest of ``candidate.diff``.
        rubric_sha256: Digest of the task's rubric.
        files: The candidate's diff, the rubric, and fingerprints of the evidence.
    """

    format: Literal["roundkit-review-packet/1"]
    code: PacketCode
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
    """One line of ``marks.jsonl``: a break begins or ends.

    Attributes:
        mark: Whether a break begins or ends.
        at_ns: The host's monotonic clock, in nanoseconds.
        boot_id: Which start of the host that clock belongs to.
    """

    sequence: Annotated[int, Field(ge=1)]
    mark: Literal["pause", "resume"]
    at_utc: UtcTime
    at_ns: Count
    boot_id: str


class Review(Record):
    """``review.json``, written exclusively when a review ends.

    Attributes:
        method: ``timed``: between host clocks; ``stated``: a person named the duration, which is readable and
            never eligible.
        packet_sha256: Digest of the packet that was reviewed.
        session_sha256: Digest of the session; null for a stated one.
        marks_sha256: Digest of the marks' bytes; null for a stated one.
        finished_ns: The host's monotonic clock at the end; null for a stated one.
        boot_id: Which start of the host that was; null for a stated one.
        active_ms: Active time, breaks left out; null where the clocks do not give it.
        unclear: Why the clocks do not give it; null where they do.
        blinded: The reviewer's word that nothing told which variant it was.
        judgement: What the reviewer found, by the rubric.
        note: The reviewer's own words.
    """

    format: Literal["roundkit-review/1"]
    method: Literal["timed", "stated"]
    packet_sha256: Digest
    session_sha256: Digest | None
    marks_sha256: Digest | None
    reviewer: Annotated[str, Field(min_length=1, max_length=200)]
    finished_utc: UtcTime
    finished_ns: Count | None
    boot_id: str | None
    active_ms: Count | None
    unclear: str | None
    blinded: bool
    judgement: Judgement
    note: Annotated[str, Field(max_length=10_000)] = ""
