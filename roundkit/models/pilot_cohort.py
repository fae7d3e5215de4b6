"""A paired pilot as whoever reports on it sees it: the same whether run here or published elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from roundkit.models.agent_run import AgentRun
from roundkit.models.base import Provenance
from roundkit.models.pilot_evidence import TrialFiles
from roundkit.models.pilot_plan import PairedPlan, Slot
from roundkit.models.pilot_published import PublishedCohort
from roundkit.models.pilot_review import Intervention, Review
from roundkit.models.pilot_trial import (
    CheckOutcome,
    CheckResult,
    Eligibility,
    GatewayCall,
    ProcessOutcome,
    ReplayRecord,
    TrialRecord,
)

State = Literal["recorded", "unfinished", "missing"]
"""A tuple has a record; was started and has none; was never started."""


@dataclass(frozen=True)
class Tokens:
    """Tokens by component; null is unknown, never zero.

    Attributes:
        input: Read outside of any cache; where ``with_cached``, whatever the source calls input.
        cached_input: Read from a cache.
        cache_write: Written into a cache.
        output: Written, reasoning among them.
        reasoning: Of them for reasoning, where it was counted apart.
        partial: Whether usage in flight is unknown, because the agent was ended.
    """

    input: int | None = None
    cached_input: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    partial: bool = False


@dataclass(frozen=True)
class Observation:
    """One expected tuple, whatever came of it.

    Attributes:
        slot: Its place in the matrix.
        state: Whether it has a record.
        folder: Its folder, relative to the pilot's; null for a published one.
        process: How its agent ended; null without a record.
        process_word: The same in the source's own word.
        detail: One line more about it.
        wall_ms: Host time of the agent; null where unknown.
        calls: Tool calls; null without a record.
        failed_calls: Those that failed.
        acceptance: What the checks decided; null where there was nothing to check.
        checks: Each check's result.
        validation_ms: Host time of the checks; null where none was measured.
        tokens: What the agent used.
        micro_usd: What it cost; null where nobody counted.
        eligibility: Whether it may enter comparative figures.
        review: Its review; null where there is none that can be read.
        interventions: Its ledger; empty where there is none that can be read.
        gateway: Its calls; empty where they cannot be read, or were not published.
        record: Its record; null without one, and for a published one.
        replays: Acceptance decided again.
        files: What eligibility was decided on; null for a published one.
    """

    slot: Slot
    state: State
    folder: str | None
    eligibility: Eligibility
    process: ProcessOutcome | None = None
    process_word: str = ""
    detail: str = ""
    wall_ms: int | None = None
    calls: int | None = None
    failed_calls: int | None = None
    acceptance: CheckOutcome | None = None
    checks: tuple[CheckResult, ...] = ()
    validation_ms: int | None = None
    tokens: Tokens = Tokens()
    micro_usd: int | None = None
    agent: AgentRun | None = None
    review: Review | None = None
    interventions: tuple[Intervention, ...] = ()
    gateway: tuple[GatewayCall, ...] = field(default=(), repr=False)
    record: TrialRecord | None = field(default=None, repr=False)
    replays: tuple[ReplayRecord, ...] = field(default=(), repr=False)
    files: TrialFiles | None = field(default=None, repr=False)

    @property
    def tuple_id(self) -> str:
        """Its name."""
        return self.slot.tuple_id


@dataclass(frozen=True)
class SetupAttempt:
    """One attempt outside of the matrix; it stays, and enters no figure of the matrix."""

    name: str
    process: ProcessOutcome | None
    detail: str
    wall_ms: int | None = None
    calls: int | None = None
    failed_calls: int | None = None
    tokens: Tokens = Tokens()
    micro_usd: int | None = None


@dataclass(frozen=True)
class Cohort:
    """All tuples of one frozen design.

    Attributes:
        digest: SHA-256 of ``plan.json``, or of ``published.json``.
        plan: The frozen plan; null for a published one.
        published: The published records; null for a pilot that was run here.
        observations: One an expected tuple, in the frozen order.
        setup: Attempts outside of the matrix.
    """

    pilot_id: str
    campaign_id: str
    question: str
    provenance: Provenance
    digest: str
    tasks: tuple[str, ...]
    variants: tuple[str, ...]
    repetitions: int
    plan: PairedPlan | None
    published: PublishedCohort | None
    observations: tuple[Observation, ...]
    setup: tuple[SetupAttempt, ...]
