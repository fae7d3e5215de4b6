"""The round plan: as its owner drafts it (``round.yaml``) and as ``prepare`` freezes it."""

from __future__ import annotations

import operator
from typing import Annotated, Literal

from pydantic import Field

from roundkit.host.devices import DeviceLimits
from roundkit.models.base import (
    CommitId,
    Count,
    Digest,
    Fraction,
    Glob,
    Identifier,
    Record,
    UtcTime,
    is_missing,
)
from roundkit.models.campaign import CampaignPlan, EarlyStopping
from roundkit.models.instruments import CountingTool
from roundkit.models.lane_agent import Authorization, LaneAgent

HarnessName = Literal["claude", "codex", "swarmflow", "command", "replay", "none"]


class DeviceSet(Record):
    """The devices that one measurement needs, leased as a whole.

    Attributes:
        id: Name of the set within the round.
        platform: ``cpu``, ``cuda``, or ``fixture`` in tests.
        devices: For ``cpu`` the core numbers as text; for other platforms the device identities.
        device_class: What sets of devices that are alike have in common; null where that is not told.
        machine: What the plan calls the machine that has them, where that is a worker of a cluster; null for
            the coordinator's own, and for what any worker that offers it may measure on.
        limits: Between which readings its devices may measure.
    """

    id: Identifier
    platform: Literal["cpu", "cuda", "fixture"]
    devices: Annotated[tuple[str, ...], Field(min_length=1)]
    device_class: Identifier | None = Field(default=None, exclude_if=is_missing)
    machine: Identifier | None = Field(default=None, exclude_if=is_missing)
    limits: DeviceLimits | None = Field(default=None, exclude_if=is_missing)

    def is_same_as(self, other: DeviceSet) -> bool:
        """Say whether another description is of this set; limits are the plan's, no part of what it is."""
        return self.model_copy(update={"limits": None}) == other.model_copy(update={"limits": None})


class Tightening(Record):
    """What a round makes stricter than the campaign's test plan; null keeps the campaign's value.

    Attributes:
        ab_ba_pairs: Pairs of one experiment.
        min_gain: The rollback line.
        loss_margin: What is no loss yet.
        sigma_min: Evidence that a verdict needs.
    """

    ab_ba_pairs: Annotated[int, Field(ge=6, multiple_of=2)] | None = None
    min_gain: Fraction | None = None
    loss_margin: Fraction | None = None
    sigma_min: Annotated[float, Field(gt=0.0)] | None = None


class LaneBudget(Record):
    """Caps of a lane's agent, over all its attempts; null is uncapped.

    Attributes:
        turns: Answers of the model.
        tokens: Tokens of all classes together.
        micro_usd: Cost in micro-USD.
        wall_s: Seconds of wall time.
    """

    turns: Count | None = None
    tokens: Count | None = None
    micro_usd: Count | None = None
    wall_s: Count | None = None


class LaneDraft(Record):
    """One lane as its owner writes it.

    Attributes:
        id: Lane name.
        entry: The search plan entry that it pursues; plane and hypothesis come from there.
        globs: The paths that it may change.
        creates: True when globs that match nothing in the incumbent name files to be created.
        harness: What fills the lane.
        model: The agent's model, where there is one.
        budget: Caps over all attempts.
        attempt_worst_case: What one attempt may cost at worst.
        attempts: How many attempts are allowed.
        submission_cap: How many distinct manifests are accepted.
        deadline_utc: When its agents and its intake end; null means the round's deadline.
        changed_condition: Why a direction on the negative memory deserves another try.
        replay: For the ``replay`` harness: commits, a branch or patch files, in order.
        exploration_devices: Devices that the lane's agent may use by itself; never those that measure.
        agent: How its agent is started, where the harness starts one.
    """

    id: Identifier
    entry: Identifier
    globs: Annotated[tuple[Glob, ...], Field(min_length=1)]
    creates: bool = False
    harness: HarnessName
    model: str | None = None
    budget: LaneBudget = LaneBudget()
    attempt_worst_case: LaneBudget = LaneBudget()
    attempts: Annotated[int, Field(ge=1)]
    submission_cap: Annotated[int, Field(ge=1)]
    deadline_utc: UtcTime | None = None
    changed_condition: str | None = None
    replay: tuple[str, ...] = ()
    exploration_devices: tuple[str, ...] = ()
    agent: LaneAgent | None = None


class CompositionPolicy(Record):
    """What ``close`` measures, and what it does when the final rerun fails.

    Attributes:
        fallback: What is left where the final head does not pass.
        fresh_standalone: Whether composed lanes are measured alone once more.
        same_device_class: Whether a lane's composition, and the rerun, use the device class on which the
            ticket was measured: the lane's own, for the rerun that of the lane composed first.
    """

    fallback: Literal["best-single", "keep-incumbent"]
    fresh_standalone: bool
    same_device_class: bool = Field(default=False, exclude_if=operator.not_)


class RoundDraft(Record):
    """A round as its owner writes it in ``round.yaml``.

    Attributes:
        round_id: Its name: letters, digits, ``.``, ``_``, ``-``.
        gates: Only stricter than the campaign's.
        protected_paths: In addition to the campaign's.
        device_sets: Each measures one ticket at a time; no device is in two.
        cpu_pinning: Whether trials run on the cores of their set only, and builds and agents on others.
        aa_interval: Tickets between two checks of the incumbent against itself.
        deadline_utc: When intake and agents end.
        lane_environment: Whether each lane gets a virtual environment.
        lanes: One search plan entry each, with disjoint globs.
    """

    format: Literal["roundkit-round/1"]
    round_id: Identifier
    gates: Tightening = Tightening()
    protected_paths: tuple[Glob, ...] = ()
    device_sets: Annotated[tuple[DeviceSet, ...], Field(min_length=1)]
    cpu_pinning: bool
    aa_interval: Annotated[int, Field(ge=1)]
    composition: CompositionPolicy
    deadline_utc: UtcTime
    lane_environment: Literal["venv", "none"] = "venv"
    authorization: Authorization | None = None
    lanes: Annotated[tuple[LaneDraft, ...], Field(min_length=1)]


class Gates(Record):
    """The thresholds in force for this round.

    Attributes:
        ab_ba_pairs: Largest number of pairs of one experiment.
        min_gain: The rollback line, a fraction.
        loss_margin: A loss beyond this fraction is a regression.
        sigma_min: Evidence that a verdict needs.
        order_margin: Order effect that is too small to matter, a fraction.
        remeasure_limit: How often what the machine broke is repeated.
        order_repeats: How often what an order effect withheld is repeated; null: once.
        session_checks: From how many A/A checks on the noise between sessions counts; null: never.
    """

    ab_ba_pairs: int
    repetitions: int
    min_gain: float
    loss_margin: float
    sigma_min: float
    order_margin: float
    remeasure_limit: int
    order_repeats: int | None = Field(default=None, exclude_if=is_missing)
    early_stopping: EarlyStopping | None = None
    statistic: Literal["t", "signed-rank", "each-order"] | None = None
    session_checks: int | None = None

    @property
    def repeats_for_order(self) -> int:
        """How often an order effect has an experiment repeated; plans without the field meant once."""
        return 1 if self.order_repeats is None else self.order_repeats


class FrozenLane(Record):
    """One lane of a frozen plan: the draft, with what it inherits from its entry.

    Attributes:
        attempt_worst_case: What one attempt may cost at worst.
        changed_condition: Why a direction on the negative memory deserves another try; null where it need
            not.
        replay: What the replay harness submits, in order.
        exploration_devices: Devices that the lane's agent may use by itself.
    """

    id: Identifier
    entry: Identifier
    plane: str
    target_stage: str
    hypothesis: str
    globs: tuple[Glob, ...]
    harness: HarnessName
    model: str | None
    budget: LaneBudget
    attempt_worst_case: LaneBudget
    attempts: int
    submission_cap: int
    deadline_utc: UtcTime
    changed_condition: str | None
    replay: tuple[str, ...]
    exploration_devices: tuple[str, ...]
    agent: LaneAgent | None = Field(default=None, exclude_if=is_missing)


class FrozenRuntime(Record):
    """The interpreter and the folders that are readable inside the boundary, all absolute.

    Attributes:
        readable: Folders that are readable inside the boundary.
    """

    python: str
    readable: tuple[str, ...]


class RoundPlan(Record):
    """A frozen round: canonical JSON whose SHA-256 is the round digest.

    Attributes:
        campaign: The plan's own copy of the campaign file; every later step works from it.
        campaign_path: Absolute path of the campaign file.
        campaign_sha256: Digest of the file's bytes when the round was frozen.
        repository: Absolute path of the campaign repository.
        incumbent: I0, the commit that candidates must beat.
        incumbent_tree: Its tree id.
        protected_paths: Globs no lane may reach.
        protected_files: SHA-256 of each file of the incumbent that those globs match.
        cpu_pinning: Whether trials run on the cores of their set only, and builds and agents on others.
        aa_interval: Tickets between two A/A checks.
        composition: What ``close`` measures, and what it does when the rerun fails.
        lane_environment: Whether each lane has a virtual environment.
        secret_sha256: Digest of the coordinator's secret, from which coins and seeds come.
        counting_tool: What counts instructions in this round, where they decide: counts of two tools differ.
        authorization: Who allows the round's agents to spend money; null: nobody.
    """

    format: Literal["roundkit-round-plan/1"]
    round_id: Identifier
    frozen_utc: UtcTime
    campaign: CampaignPlan
    campaign_path: str
    campaign_sha256: Digest
    repository: str
    incumbent: CommitId
    incumbent_tree: CommitId
    gates: Gates
    protected_paths: tuple[Glob, ...]
    protected_files: dict[str, Digest]
    runtime: FrozenRuntime
    device_sets: tuple[DeviceSet, ...]
    cpu_pinning: bool
    aa_interval: int
    composition: CompositionPolicy
    deadline_utc: UtcTime
    lane_environment: Literal["venv", "none"]
    lanes: tuple[FrozenLane, ...]
    secret_sha256: Digest
    counting_tool: CountingTool | None = Field(default=None, exclude_if=is_missing)
    authorization: Authorization | None = Field(default=None, exclude_if=is_missing)

    def lane(self, lane_id: str) -> FrozenLane:
        """Return the lane of that id.

        Raises:
            KeyError: the plan has no such lane.
        """
        for lane in self.lanes:
            if lane.id == lane_id:
                return lane
        raise KeyError(lane_id)
