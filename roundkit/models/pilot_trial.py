"""What one tuple of a paired pilot leaves behind: start, calls, drift, presentation, acceptance, record."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from roundkit.models.agent_run import AgentRun
from roundkit.models.base import Count, Digest, Identifier, Provenance, Record, UtcTime, is_missing
from roundkit.models.clocks import ClockPair

ProcessOutcome = Literal["completed", "timeout", "error", "aborted"]
"""How a tuple's agent ended; says nothing about its candidate."""

CheckOutcome = Literal["passed", "failed", "unavailable"]

EligibilityItem = Literal["presentation", "review", "recovery", "interventions"]
"""The four measurements without which an observation is ineligible."""

RecoveryKind = Literal[
    "not-asked",
    "no-trigger",
    "no-next-write",
    "recovered",
    "rejected-stale-write",
    "wrong-digest",
    "malformed",
]
"""What became of a task's drift: the task has none; the agent never read the file; it wrote the path no more;
its next write named the new content's digest; it named the old one and was refused; it named neither; or the
next write cannot be read as one."""


class LedgerState(Record):
    """A ledger of interventions as it stood when another attempt was started.

    Attributes:
        attempt: Name of its trial's folder.
        size: Its length in bytes; it only grows.
        sha256: Digest of those bytes.
    """

    attempt: Identifier
    size: Count
    sha256: Digest


class TrialStart(Record):
    """``start.json``, written exclusively before anything of a tuple runs: from then on its slot is used.

    Attributes:
        previous_sha256: Digest of the record of the attempt before it, setup attempts included; null for the
            pilot's first one.
        ledgers: Ledgers that had grown since their attempts' records, which bind what was there before; null
            where an older version wrote it, which looked at none.
        order: The slot; null for a setup attempt, which stays outside the matrix.
        attempt: Name of the trial's folder.
        started_clock: ``started_utc`` on both of the host's clocks; null where an older version wrote it, or
            the host has but one.
    """

    format: Literal["roundkit-pilot-start/1"]
    plan_sha256: Digest
    previous_sha256: Digest | None
    tuple_id: str | None
    order: int | None
    attempt: Identifier
    started_utc: UtcTime
    started_clock: ClockPair | None = Field(default=None, exclude_if=is_missing)
    ledgers: tuple[LedgerState, ...] | None = Field(default=None, exclude_if=is_missing)


class GatewayCall(Record):
    """One line of ``calls.jsonl``: a call as the gateway decided it.

    Attributes:
        sequence: From 1, in the order in which calls were decided.
        request_line: Number of its line in ``wire.jsonl``, from 1.
        response_line: Number of the answer's; null where the agent had ended before it was sent.
        tool: ``read``, ``write``, ``delete``, ``list`` or a program's name; what was asked for, shortened,
            if it is none of them.
        argv: What a program was given; empty for others.
        path: The path that a read, write or deletion is about, in its one normal form; null for others.
        expected_sha256: Digest that a write names; null where it names none.
        found_sha256: Digest of what lay there before; null where nothing did, and for programs.
        after_sha256: Digest of what lies there afterwards; null where nothing does, and for programs.
        code: The gateway's own code: ``ok``, ``stale``, ``missing``, ``refused``, ``malformed``, ``program``.
        exit_code: Exit code as the agent sees it; null where a program was ended.
        stdout_sha256: Digest of the answer's standard output.
        stderr_sha256: Digest of the answer's standard error.
        wall_ms: Host time of the call.
    """

    sequence: Annotated[int, Field(ge=1)]
    request_line: Annotated[int, Field(ge=1)]
    response_line: Annotated[int, Field(ge=1)] | None
    tool: str
    argv: tuple[str, ...]
    path: str | None
    expected_sha256: Digest | None
    found_sha256: Digest | None
    after_sha256: Digest | None
    code: Literal["ok", "stale", "missing", "refused", "malformed", "program"]
    exit_code: int | None
    stdout_sha256: Digest
    stderr_sha256: Digest
    wall_ms: Count


class WireLine(Record):
    """One line of ``wire.jsonl``: the bytes of one message, as they crossed between agent and gateway.

    Attributes:
        way: ``in`` from the agent, ``out`` to it.
        base64: The bytes, without the newline that ends a message; of one that is too long, its beginning.
        bytes: How many there were.
    """

    way: Literal["in", "out"]
    base64: str
    bytes: Count


class DriftReceipt(Record):
    """``drift.json``, written exclusively when a task's drift was made.

    Attributes:
        path: The file.
        trigger_sequence: Sequence of the read that triggered it.
        before_sha256: Digest of the file before, the one that the agent was told.
        after_sha256: Digest of the file afterwards.
        preimage: File of the archive that holds the bytes before.
    """

    format: Literal["roundkit-pilot-drift/1"]
    tuple_id: str
    path: str
    trigger_sequence: Annotated[int, Field(ge=1)]
    before_sha256: Digest
    after_sha256: Digest
    preimage: str


class Presentation(Record):
    """``presentation.json``, written exclusively at the end: what was shown to an agent, in bytes.

    Attributes:
        prompt_sha256: Digest of the prompt as it went to the agent.
        prompt_bytes: Its length.
        wire_sha256: Digest of ``wire.jsonl``.
        responses: Answers to calls, each counted as often as it was sent.
        response_bytes: Bytes of those answers.
        total_bytes: Both together.
    """

    format: Literal["roundkit-pilot-presentation/1"]
    tuple_id: str
    prompt_sha256: Digest
    prompt_bytes: Count
    wire_sha256: Digest
    responses: Count
    response_bytes: Count
    total_bytes: Count


class CheckResult(Record):
    """One check: its outcome, and why where it is unavailable.

    Attributes:
        check: Name of the check.
        outcome: ``passed``, ``failed`` or ``unavailable``.
        stdout_sha256: Digest of what it printed; null where it did not run.
        stderr_sha256: The same of standard error.
    """

    check: Identifier
    outcome: CheckOutcome
    reason: str | None = None
    stdout_sha256: Digest | None = None
    stderr_sha256: Digest | None = None


class Acceptance(Record):
    """What the task's checks say about an archived candidate.

    Attributes:
        candidate_sha256: Tree digest of the candidate that was checked.
        checks: In the plan's order.
        outcome: ``passed`` when all are, ``failed`` when one is, else ``unavailable``.
        reason: Why it is unavailable; null otherwise.
    """

    candidate_sha256: Digest
    checks: tuple[CheckResult, ...]
    outcome: CheckOutcome
    reason: str | None = None


class ArchivedFile(Record):
    """One file of a trial's folder, bound by its record."""

    path: str
    size: Count
    sha256: Digest


class TrialRecord(Record):
    """``record.json``: one attempt at a tuple, whatever came of it.

    Attributes:
        ended_clock: ``ended_utc`` on both of the host's clocks, as of the start.
        process: How its agent ended.
        detail: One line more about that.
        agent: The agent's run; null where it never started.
        calls: Calls of the gateway.
        failed_calls: Those whose exit code is not 0.
        wall_ms: Host time of the agent; null where it is unknown, as after a killed runner.
        validation_ms: Host time of all checks; null where none ran.
        acceptance: What the checks say; null for an aborted attempt, whose agent had not got its time.
        truncated: What was cut off while it was archived, by name: streams, or the candidate.
        files: Every file of the folder that is fixed now, with size and digest.
    """

    format: Literal["roundkit-pilot-trial/1"]
    plan_sha256: Digest
    tuple_id: str | None
    order: int | None
    attempt: Identifier
    provenance: Provenance
    started_utc: UtcTime
    ended_utc: UtcTime | None
    ended_clock: ClockPair | None = Field(default=None, exclude_if=is_missing)
    process: ProcessOutcome
    detail: str
    agent: AgentRun | None
    calls: Count
    failed_calls: Count
    wall_ms: Count | None
    validation_ms: Count | None
    acceptance: Acceptance | None
    truncated: tuple[str, ...]
    files: tuple[ArchivedFile, ...]


class ReplayRecord(Record):
    """Acceptance decided again, from archived bytes alone; a disagreement is a finding.

    Attributes:
        format: From 2 on, its file's name holds the digest of its bytes; of format 1 nothing does.
        agrees: Whether both decisions are the same.
    """

    format: Literal["roundkit-pilot-replay/1", "roundkit-pilot-replay/2"]
    tuple_id: str
    attempt: Identifier
    replayed_utc: UtcTime
    acceptance: Acceptance
    agrees: bool

    @property
    def is_named_by_digest(self) -> bool:
        """Say whether its file's name holds its digest: older versions numbered replays."""
        return self.format != "roundkit-pilot-replay/1"


class ItemResult(Record):
    """One eligibility item of an observation: measured, or why it is not."""

    item: EligibilityItem
    reason: str | None


class Eligibility(Record):
    """Whether an observation may enter comparative figures.

    Attributes:
        items: The four items in their order, each with the reason why it is missing or null.
        presented_bytes: From a good presentation; null otherwise.
        active_ms: From a good review; null otherwise.
        recovery: From a good drift record; null otherwise.
        interventions: Number of entries of a good ledger; null otherwise.
    """

    tuple_id: str
    items: tuple[ItemResult, ...]
    presented_bytes: Count | None
    active_ms: Count | None
    recovery: RecoveryKind | None
    interventions: Count | None

    @property
    def eligible(self) -> bool:
        """Whether all four items are there."""
        return all(item.reason is None for item in self.items)
