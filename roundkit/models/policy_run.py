"""What one run of a policy pilot leaves behind, and what is decided from all of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from roundkit.models.attempts import Cost
from roundkit.models.base import (
    CommitId,
    Count,
    Digest,
    Identifier,
    Provenance,
    Record,
    UtcTime,
    is_missing,
)
from roundkit.models.clocks import ClockPair
from roundkit.models.pilot_trial import ArchivedFile
from roundkit.models.policy_plan import Arm

RunProcess = Literal["completed", "error", "aborted"]
"""How a run ended: by the frozen rules; because a round broke; or its runner was killed."""

RunEnd = Literal["target", "budget", "nothing-planned"]
"""Why it ended by the rules: target reached; no lane fits the budget; no entry is planned any more."""

DecisionName = Literal["faster", "slower", "not distinguishable"]
PairWinner = Literal["P", "S", "tie", "both-censored", "incomplete"]


class PolicyStart(Record):
    """``start.json``, written exclusively before anything of a run: from then on its slot is used.

    Attributes:
        previous_sha256: Digest of the record of the run before it; null for the pilot's first one.
    """

    format: Literal["roundkit-policy-start/1"]
    plan_sha256: Digest
    previous_sha256: Digest | None
    run_id: str
    order: Annotated[int, Field(ge=1)]
    started_utc: UtcTime


class PolicyLaunch(Record):
    """``launch.json``, written exclusively right before a run's first launch: where its clock starts.

    Attributes:
        launched_utc: When the lanes were launched.
        clock: The same on both of the host's clocks; missing where it has but one, and in older records.
    """

    format: Literal["roundkit-policy-launch/1"]
    plan_sha256: Digest
    run_id: str
    launched_utc: UtcTime
    clock: ClockPair | None = Field(default=None, exclude_if=is_missing)


class PolicyEnd(Record):
    """``end.json``: how a run ended as a process. An aborted run gets it from whoever found it broken.

    Attributes:
        noted_utc: When it was noted.
        clock: The same on both of the host's clocks; missing where it has but one, and in older records.
    """

    format: Literal["roundkit-policy-end/1"]
    plan_sha256: Digest
    run_id: str
    process: RunProcess
    detail: str
    noted_utc: UtcTime
    clock: ClockPair | None = Field(default=None, exclude_if=is_missing)


class TicketWait(Record):
    """How long one ticket waited for a device; null where it was never measured, or rejected before.

    Attributes:
        wait_s: Seconds from intake to its first trial; null where there was none, and where the host's clock
            was set.
    """

    ticket: str
    lane: Identifier
    wait_s: float | None
    reason: str | None


class StepRatio(Record):
    """The interaction ratio of one composition step; null is unmeasurable, and says so in its basis.

    Attributes:
        value: The interaction ratio; null where it is unmeasurable.
    """

    round_id: Identifier
    lane: Identifier
    step: Count
    value: float | None
    basis: str


class PolicyRound(Record):
    """One round of a run, as far as the run needs it.

    Attributes:
        evidence_sha256: Digest of its evidence.
        gain: Its rerun's gain over the incumbent that it started from; null without a passing rerun.
        total_gain: The run's gain over its first incumbent after this round.
        elapsed_s: From the run's first launch to the end of the passing rerun; null without one, and where
            the host's clock was set.
        charged: What its attempts were charged, their worst cases.
    """

    round_id: Identifier
    evidence_sha256: Digest
    lanes: tuple[Identifier, ...]
    incumbent: CommitId
    head_tree: CommitId
    advanced: bool
    gain: float | None
    total_gain: float
    elapsed_s: float | None
    charged: Cost


class PolicyRunRecord(Record):
    """``record.json``: one run, derived from its rounds' evidence and the two times of its clock.

    Where somebody set the host's clock during it, no difference of its times is a duration, and all are null.

    Attributes:
        format: Of ``1``, older than ``2``, nobody can say whether its clock was set forward, and it binds
            none of its own files.
        files: Everything in its folder but this record and its rounds' evidence; missing in older records.
        process: How it ended.
        detail: One line more about that.
        end: By which rule; null for a run that broke.
        provenances: What made its candidates, each once.
        launched_utc: Where its clock starts; null where nothing was ever launched.
        rounds: Its rounds with evidence, in order.
        target_s: Seconds from the first launch to the passing rerun that reached the target; null otherwise.
        censored: Whether it ended by the rules without reaching the target: later than any time.
        wall_s: Seconds from the first launch to the end of its last round; null for a broken run.
        final_gain: Of its last incumbent over its first one, chained over reruns; 0 for the first one itself.
        charged: Of the total budget.
        tokens: By the counters of the agents' tools; null where one of them does not tell.
        micro_usd: The same in millionths of a US dollar.
        device_hours: Hours of leases, times the devices of each lease.
        utilization: Share of the run's wall clock that its device sets were leased, all sets together.
        waits: Every ticket's wait for a device.
        interactions: Every composition step's ratio.
        lost: Lanes that passed alone and lost their gain in composition, ``<round>-<lane>``.
        rejected: Submissions that came to nothing, by cause; ``gate`` for those that were measured.
        experiments: Complete or not, by purpose.
    """

    format: Literal["roundkit-policy-run/1", "roundkit-policy-run/2"]
    plan_sha256: Digest
    files: tuple[ArchivedFile, ...] | None = Field(default=None, exclude_if=is_missing)
    run_id: str
    order: Annotated[int, Field(ge=1)]
    arm: Arm
    repetition: Annotated[int, Field(ge=1)]
    process: RunProcess
    detail: str
    end: RunEnd | None
    provenances: tuple[Provenance, ...]
    launched_utc: UtcTime | None
    rounds: tuple[PolicyRound, ...]
    target_s: float | None
    censored: bool
    wall_s: float | None
    final_gain: float | None
    charged: Cost
    tokens: Count | None
    micro_usd: Count | None
    device_hours: float | None
    utilization: float | None
    waits: tuple[TicketWait, ...]
    interactions: tuple[StepRatio, ...]
    lost: tuple[str, ...]
    rejected: dict[str, int]
    experiments: dict[str, int]


class PairOutcome(Record):
    """One repetition: both times, and which arm was first.

    Attributes:
        p_s: Seconds that ``P`` took; null where it is censored or broken.
        s_s: Seconds that ``S`` took.
        ratio: ``p_s / s_s``; null where either is missing.
        winner: The arm that was first.
    """

    repetition: Annotated[int, Field(ge=1)]
    p_s: float | None
    s_s: float | None
    ratio: float | None
    winner: PairWinner


class PolicyDecision(Record):
    """``decision.json``: what follows from all runs, once every slot is used.

    Attributes:
        decision: By the frozen rule.
        reasons: Every condition of the rule in words, with its figures.
        pairs: One row a repetition.
        median_ratio: Of ``P`` over ``S`` with censored as later than any time; null where that has no value.
        p_final_gain: Median over the runs of ``P``; null where one broke.
        s_final_gain: The same of ``S``.
        ratio_threshold: What the median ratio had to be under.
        equal_arms_faster: Probability at most with which two equal arms are called ``faster``.
        records: Digest of each run's record.
    """

    format: Literal["roundkit-policy-decision/1"]
    plan_sha256: Digest
    decision: DecisionName
    reasons: tuple[str, ...]
    pairs: tuple[PairOutcome, ...]
    median_ratio: float | None
    p_final_gain: float | None
    s_final_gain: float | None
    ratio_threshold: float
    equal_arms_faster: float
    records: dict[str, Digest]
