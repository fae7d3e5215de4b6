"""The policy pilot: as its owner writes it (``pilot.yaml``, ``kind: policy``) and as it is frozen."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from roundkit.models.base import (
    CommitId,
    Count,
    Digest,
    Fraction,
    Identifier,
    PositiveCount,
    PositiveSeconds,
    Provenance,
    Record,
    UtcTime,
)
from roundkit.models.campaign import CampaignPlan
from roundkit.models.lane_agent import AbsolutePath, Authorization
from roundkit.models.round_plan import LaneBudget, RoundDraft

Arm = Literal["P", "S"]
"""``P`` runs rounds of several lanes, ``S`` the same lanes one a round."""

ARMS: tuple[Arm, Arm] = ("P", "S")
GainShare = Annotated[float, Field(gt=0.0, lt=1.0)]
Share = Annotated[float, Field(gt=0.0, le=1.0)]
Minutes = Annotated[float, Field(ge=0.0)]


def _below(path: str) -> str:
    if not path or path.startswith("/") or {"..", "."} & set(PurePosixPath(path).parts):
        raise ValueError("a path relative to this file, and not above it")
    return path


RelativePath = Annotated[str, AfterValidator(_below)]


class ReferenceGain(Record):
    """G*, what the whole task is known to give.

    Attributes:
        gain: A fraction, ``1 - candidate / baseline`` where less is better.
        source: Where it is known from: a reference solution, or earlier evidence.
    """

    gain: GainShare
    source: Annotated[str, Field(min_length=1)]


class ArmRounds(Record):
    """The round each arm's rounds are made from; both say the same, mostly because they are one file.

    Attributes:
        P: ``round.yaml`` of the arm with several lanes a round.
        S: ``round.yaml`` of the arm with one lane a round.
    """

    P: RelativePath
    S: RelativePath


class Assumptions(Record):
    """What ``pilot simulate`` takes for granted about agents, machine and program.

    Attributes:
        pilots: How many pilots are simulated.
        seed: Seed of all draws.
        agent_minutes: Work of one lane's agent in one round, without waiting for verdicts.
        agent_spread: Standard deviation of its logarithm; 0 makes every agent take the same.
        submissions: Candidates that a lane submits in one round, each after an equal share of the work; the
            next is begun once the verdict is in.
        build_minutes: From submission to a built candidate, with no device.
        measurement_minutes: One experiment on one device set.
        measurement_spread: Standard deviation of its logarithm.
        round_minutes: What a round costs beside all that: prepare, launch, close.
        rejected: Probability that a submission is rejected before it is measured.
        fruitless: Probability that a candidate has no gain at all.
        lane_gain: The gain of one entry's good candidate, a fraction.
        gain_spread: Standard deviation of the log gain between candidates.
        measured_error: Standard error of one measured log gain.
        overlap: Probability that a lane loses its gain on top of others, whatever its owner expected.
    """

    pilots: PositiveCount
    seed: Count
    agent_minutes: Minutes
    agent_spread: Minutes
    submissions: PositiveCount
    build_minutes: Minutes
    measurement_minutes: Minutes
    measurement_spread: Minutes
    round_minutes: Minutes
    rejected: Fraction
    fruitless: Fraction
    lane_gain: GainShare
    gain_spread: Minutes
    measured_error: Minutes
    overlap: Fraction


class PolicyDraft(Record):
    """A policy pilot as its owner writes it; paths are relative to ``pilot.yaml``.

    Attributes:
        campaign: The campaign file, with at least three planned entries for the lanes.
        rounds: What the rounds of each arm are made from. Their ids and deadlines are set anew each time.
        lanes_per_round: N: lanes in one round of ``P``; ``S`` has one.
        repetitions: Runs of each arm.
        reference: G*.
        fraction: f: a run reaches the target when its incumbent's gain is at least f times G*.
        ratio_threshold: What the median of the per-pair ratios of wall clocks must be under.
        total_budget: What the agents of one run may be charged, the same for both arms.
        round_s: Seconds from the preparation of a round to its deadline.
        authorization: Who allows the agents of all runs together to spend money.
        assumptions: For ``pilot simulate`` alone.
    """

    format: Literal["roundkit-pilot/1"]
    kind: Literal["policy"]
    pilot_id: Identifier
    campaign_id: Identifier
    question: str
    seed: Count
    campaign: RelativePath
    rounds: ArmRounds
    lanes_per_round: PositiveCount
    repetitions: PositiveCount
    reference: ReferenceGain
    fraction: Share
    ratio_threshold: Share
    total_budget: LaneBudget
    round_s: PositiveSeconds
    authorization: Authorization | None = None
    assumptions: Assumptions | None = None


class PolicyRunner(Record):
    """What runs a pilot.

    Attributes:
        version: Version of roundkit.
        revision: Commit of the checkout that it runs from; null for an installed package.
        python: Version of Python.
        machine: Identity of the hardware, never a host name.
    """

    version: str
    revision: CommitId | None
    python: str
    machine: str


class PolicySlot(Record):
    """One expected run and its place in the order, from 1."""

    order: PositiveCount
    arm: Arm
    repetition: PositiveCount

    @property
    def run_id(self) -> str:
        """Return the run's name, e.g. ``P.2``."""
        return f"{self.arm}.{self.repetition}"


class PolicyPlan(Record):
    """A frozen policy pilot: canonical JSON whose SHA-256 is the pilot's digest.

    Attributes:
        campaign: The campaign as every run starts with it.
        campaign_sha256: Digest of the file's bytes, which lie beside the plan.
        round: What both arms' rounds are made from.
        repository: Absolute path of the repository that every run copies I0 from.
        incumbent: I0.
        incumbent_tree: Its tree.
        lanes_per_round: Lanes in one round of ``P``.
        reference: G*.
        fraction: Share of G* that is the target.
        ratio_threshold: What the median of the per-pair ratios must be under.
        total_budget: What the agents of one run may be charged.
        round_s: Seconds from the preparation of a round to its deadline.
        provenance: What plays the agents.
        schedule: Every expected run once, in the order in which they run.
        schedule_sha256: Digest of the canonical JSON of the schedule.
        runner: What runs it.
    """

    format: Literal["roundkit-policy-plan/1"]
    kind: Literal["policy"]
    pilot_id: Identifier
    campaign_id: Identifier
    question: str
    frozen_utc: UtcTime
    seed: Count
    campaign: CampaignPlan
    campaign_sha256: Digest
    round: RoundDraft
    repository: AbsolutePath
    incumbent: CommitId
    incumbent_tree: CommitId
    lanes_per_round: int
    repetitions: int
    reference: ReferenceGain
    fraction: float
    ratio_threshold: float
    total_budget: LaneBudget
    round_s: float
    authorization: Authorization | None
    provenance: Provenance
    schedule: tuple[PolicySlot, ...]
    schedule_sha256: Digest
    runner: PolicyRunner

    @property
    def target_gain(self) -> float:
        """Return f times G*."""
        return self.fraction * self.reference.gain

    def lanes_of(self, arm: Arm) -> int:
        """Return how many lanes one round of an arm has at most."""
        return self.lanes_per_round if arm == "P" else 1
