"""The paired pilot as ``pilot prepare`` freezes it."""

from __future__ import annotations

from typing import Literal

from roundkit.models.base import (
    CommitId,
    Count,
    Digest,
    Identifier,
    PositiveCount,
    Provenance,
    Record,
    UtcTime,
)
from roundkit.models.lane_agent import Authorization
from roundkit.models.pilot_draft import PilotModel, PilotPolicy, PilotTask, PilotTool, PilotVariant
from roundkit.models.round_plan import FrozenRuntime


class FrozenTask(Record):
    """One task of a frozen plan: the draft's, with the digests of what it names.

    Attributes:
        task: The task, as its owner wrote it.
        fixture_sha256: Tree digest of the fixture, as :func:`roundkit.core.files.tree_digest` takes it.
        prompt_sha256: Digest of the prompt's bytes.
        rubric_sha256: Digest of the rubric's bytes.
        hidden_sha256: Tree digest of each check's hidden files, by the check's id.
        drift_sha256: Digest of the drift's new content; null without a drift.
    """

    task: PilotTask
    fixture_sha256: Digest
    prompt_sha256: Digest
    rubric_sha256: Digest
    hidden_sha256: dict[Identifier, Digest]
    drift_sha256: Digest | None


class FrozenVariant(Record):
    """One variant of a frozen plan, with the digest of its guide; null without one.

    Attributes:
        variant: The variant, as its owner wrote it.
        guide_sha256: Digest of its guide; null without one.
    """

    variant: PilotVariant
    guide_sha256: Digest | None


class Slot(Record):
    """One expected tuple and its place in the order.

    Attributes:
        order: From 1.
        task: The task's id.
        variant: The variant's id.
        repetition: From 1.
    """

    order: PositiveCount
    task: Identifier
    variant: Identifier
    repetition: PositiveCount

    @property
    def tuple_id(self) -> str:
        """Return the tuple's name, e.g. ``rename.guided.2``."""
        return f"{self.task}.{self.variant}.{self.repetition}"


class Runner(Record):
    """What runs a pilot: roundkit's version, its own revision where it is a checkout, and the machine.

    Attributes:
        version: Version of roundkit.
        revision: Commit of the checkout that it runs from; null for an installed package.
        python: Version of Python.
        machine: Identity of the hardware, as rounds record it; never a host name.
    """

    version: str
    revision: CommitId | None
    python: str
    machine: str


class PairedPlan(Record):
    """A frozen paired pilot: canonical JSON whose SHA-256 is the pilot's digest.

    Attributes:
        format: From 2 on, ``plan.json.sha256`` beside it names its digest; a plan of format 1 has no seal.
        frozen_utc: When it was frozen.
        repository_revision: Commit of the repository that ``pilot.yaml`` lies in; null outside of one.
        provenance: What plays the agents.
        tasks: Tasks with their digests, in the draft's order.
        variants: Variants with theirs.
        tools: Programs that agents may call.
        model: The one model configuration of all tuples.
        schedule: Every expected tuple once, in the order in which they run.
        schedule_sha256: Digest of the canonical JSON of the schedule.
        runner: What froze it, and is to run it.
        runtime: Interpreter for ``{python}`` in programs and checks, and what it reads.
        tools_sha256: Tree digest of each tool's own files, by the tool's name.
        scripts_sha256: Tree digest of a scripted agent's program; null without one.
    """

    format: Literal["roundkit-paired-plan/1", "roundkit-paired-plan/2"]
    kind: Literal["paired"]
    pilot_id: Identifier
    campaign_id: Identifier
    question: str
    frozen_utc: UtcTime
    repository_revision: CommitId | None
    seed: Count
    repetitions: int
    provenance: Provenance
    tasks: tuple[FrozenTask, ...]
    variants: tuple[FrozenVariant, ...]
    tools: tuple[PilotTool, ...]
    model: PilotModel
    policy: PilotPolicy
    authorization: Authorization | None
    schedule: tuple[Slot, ...]
    schedule_sha256: Digest
    runner: Runner
    runtime: FrozenRuntime
    tools_sha256: dict[Identifier, Digest]
    scripts_sha256: Digest | None

    @property
    def is_sealed(self) -> bool:
        """Say whether its folder has a seal: plans that were frozen by older versions have none."""
        return self.format != "roundkit-paired-plan/1"

    def task(self, task_id: str) -> FrozenTask:
        """Return the task of that id.

        Raises:
            KeyError: the plan has no such task.
        """
        return {frozen.task.id: frozen for frozen in self.tasks}[task_id]

    def variant(self, variant_id: str) -> FrozenVariant:
        """Return the variant of that id.

        Raises:
            KeyError: the plan has no such variant.
        """
        return {frozen.variant.id: frozen for frozen in self.variants}[variant_id]
