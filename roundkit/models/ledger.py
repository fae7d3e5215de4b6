"""The record of a closed round: tickets, composition, rerun, and what became of every lane."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from roundkit.models.attempts import AttemptRecord
from roundkit.models.base import CommitId, Count, Digest, Identifier, Provenance, Record, UtcTime
from roundkit.models.lane import Manifest, TicketState
from roundkit.models.round_plan import HarnessName
from roundkit.models.search_plan import EntryStatus
from roundkit.models.verdict import VerdictRecord

RejectCause = Literal[
    "scope", "protected-path", "hash-mismatch", "symlink", "submodule", "mode", "too-large", "malformed",
    "cap", "late", "ticket-collision", "build", "smoke", "import-path",
]  # fmt: skip
BEYOND_THE_CAP: frozenset[RejectCause] = frozenset({"cap", "late"})
"""Why a submission was rejected that used up none of its lane's."""
LaneOutcome = Literal["composed", "skipped", "no-passing-ticket", "no-result", "rerun-failed"]


def _is_empty(value: str) -> bool:
    return not value


class CommandLog(Record):
    """How a build, probe or smoke command of a candidate ended.

    Attributes:
        step: Which command.
        end_reason: How it ended: ``exited``, or the limit that ended it.
        tail: The end of what it printed; untrusted text.
    """

    step: Literal["build", "import-path", "smoke"]
    exit_code: int | None
    end_reason: str
    wall_s: float
    tail: str

    @property
    def succeeded(self) -> bool:
        """Whether the command did what it should."""
        return self.end_reason == "exited" and self.exit_code == 0


class TicketRecord(Record):
    """One accepted or rejected submission, from intake to verdict.

    Attributes:
        key: Identity of the submission.
        manifest_digest: Digest that identifies the candidate.
        state: ``queued``, ``measuring``, ``measured`` or ``rejected``.
        reject_cause: Why it was rejected; null where it was not.
        reject_detail: The same in words.
        candidate_commit: The candidate as a commit; null where it never became one.
        candidate_tree: Its tree.
        commands: Build, probe and smoke, as they ended.
        experiments: Its experiments, repetitions included.
        verdict: Null before it was measured, or where it was rejected.
        measured_utc: When it had its verdict; null before.
    """

    ticket: str
    key: Digest
    lane: Identifier
    sequence: Count
    manifest: Manifest
    manifest_digest: Digest
    intake_utc: UtcTime
    state: TicketState
    reject_cause: RejectCause | None
    reject_detail: str | None
    candidate_commit: CommitId | None
    candidate_tree: CommitId | None
    commands: tuple[CommandLog, ...]
    experiments: tuple[Identifier, ...]
    verdict: VerdictRecord | None
    measured_utc: UtcTime | None
    provenance: Provenance


class RejectedSubmission(Record):
    """An outbox entry that could not even become a ticket (its manifest cannot be read).

    Attributes:
        entry: Name of the outbox entry; untrusted text.
        cause: Why.
    """

    lane: Identifier
    entry: str
    cause: RejectCause
    detail: str
    intake_utc: UtcTime


class InteractionRatio(Record):
    """A step's gain over the lane's standalone gain, both in the metric's unit, with its 95 % interval.

    ``basis`` says where the standalone gain came from; step 1's ratio is 1 by construction.

    Attributes:
        value: The ratio; null where it is unmeasurable.
    """

    value: float | None
    low: float | None
    high: float | None
    basis: Literal["fresh", "reused-selected", "by-construction", "unmeasurable"]


class CompositionStep(Record):
    """One lane laid on the head so far and measured against it.

    Attributes:
        head_before: Commit that it was measured against.
        tree: Its tree; null likewise.
        candidate: The step's own commit; null where the files do not fit together.
        reused: Whether the ticket's own measurement was reused.
        kept: Whether the step stays.
        ratio: Its gain over the lane's gain alone.
    """

    step: Count
    lane: Identifier
    ticket: str
    head_before: CommitId
    tree: CommitId | None
    candidate: CommitId | None
    experiment: Identifier | None
    reused: bool
    verdict: VerdictRecord
    kept: bool
    ratio: InteractionRatio


class RerunRecord(Record):
    """The final head, or the best single lane, once more against I0; ``lanes`` are those it holds.

    Attributes:
        kind: ``rerun`` of the final head, or ``fallback`` to the best single lane.
    """

    kind: Literal["rerun", "fallback"]
    commit: CommitId
    tree: CommitId
    lanes: tuple[Identifier, ...]
    experiment: Identifier | None
    verdict: VerdictRecord


class LaneRecord(Record):
    """What became of one lane.

    Attributes:
        tickets: Its tickets, in order of intake.
        selected: The ticket that stands for it; null when none passed.
        ticket_gain: That ticket's estimate, biased upward by selection.
        outcome: What became of it in the composition.
        entry_status: What became of its search plan entry.
        attempts: How many attempts of its agent are in the ledger, in whatever phase.
        cost_micro_usd: What those that ran cost; null when there was none, or one whose cost nobody knows.
        cost: The same in words, with harness and model; empty where no agent ran.
    """

    lane: Identifier
    entry: Identifier
    plane: str
    harness: HarnessName
    model: str | None
    tickets: tuple[str, ...]
    selected: str | None
    ticket_gain: float | None
    outcome: LaneOutcome
    entry_status: EntryStatus
    attempts: Count
    cost_micro_usd: Count | None
    sentence: str
    cost: str = Field(default="", exclude_if=_is_empty)


class AaCheck(Record):
    """One measurement of the incumbent against itself.

    Attributes:
        experiment: Its experiment.
        z: Evidence for a difference, which there is none of; null when it was not measured to its end.
        cusum: The drift statistic after it.
        delta: The difference seen, a log ratio; null when it was not measured to its end.
        standard_error: Of ``delta``.
        passed: Whether the queue may go on.
        reason: Why not.
        resumes: Whether the queue was paused and this check was to end that, so that the drift statistic
            starts anew with it.
    """

    experiment: Identifier
    z: float | None
    cusum: float | None
    delta: float | None = None
    standard_error: float | None = None
    passed: bool
    reason: str | None
    resumes: bool = False


class RoundLedger(Record):
    """The whole round. Development evidence, not acceptance of the campaign.

    Attributes:
        incumbent: I0.
        head: The commit that the round ends with, as it was measured; I0 when nothing was kept. The chain
            that is written to the campaign repository has the same trees under new commit ids, because its
            messages name the digest of the evidence that holds this ledger.
        head_tree: Tree of ``head``.
        opened_utc: When the plan was frozen.
        closed_utc: When the round was closed.
        attempts: Every attempt of every lane's agent, in order of reservation.
        tickets: Every ticket, in order of intake.
        rejected_submissions: Outbox entries that could not become a ticket.
        aa_checks: Every check of the incumbent against itself.
        order: The lanes in the order of composition.
        composition: The steps, in order.
        rerun: The final rerun, and the fallback where there was one.
        gain: The fresh rerun's gain over I0, as a fraction; null when there was no passing rerun.
        statement: What the ledger is, and what it is not.
    """

    format: Literal["roundkit-round-ledger/1"]
    round_id: Identifier
    round_digest: Digest
    campaign_id: Identifier
    incumbent: CommitId
    head: CommitId
    head_tree: CommitId
    advanced: bool
    opened_utc: UtcTime
    closed_utc: UtcTime
    lanes: tuple[LaneRecord, ...]
    attempts: tuple[AttemptRecord, ...]
    tickets: tuple[TicketRecord, ...]
    rejected_submissions: tuple[RejectedSubmission, ...]
    aa_checks: tuple[AaCheck, ...]
    order: tuple[Identifier, ...]
    composition: tuple[CompositionStep, ...]
    rerun: tuple[RerunRecord, ...]
    gain: float | None
    statement: str
