"""The paired pilot: as its owner writes it (``pilot.yaml``) and as ``pilot prepare`` freezes it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from roundkit.host.confine import Limits
from roundkit.models.base import (
    Argv,
    CommitId,
    Count,
    Digest,
    Identifier,
    PositiveSeconds,
    Provenance,
    Record,
    UtcTime,
)
from roundkit.models.lane_agent import Authorization, LaneAgent
from roundkit.models.round_plan import FrozenRuntime, LaneBudget

_PART = r"(?:[^./\x00][^/\x00]*|\.[^./\x00][^/\x00]*|\.\.[^/\x00]+)"
RelativePath = Annotated[str, StringConstraints(pattern=rf"^(?:{_PART}/)*{_PART}$", max_length=1000)]
"""A POSIX path below some folder, without ``.`` and ``..``."""


class PilotTool(Record):
    """A program that agents may call through the gateway, beside reading and writing.

    Attributes:
        name: What agents call it.
        argv: What is started for a call, in the candidate's folder; the call's own arguments follow. Its
            first word is ``{python}``, a name on the boundary's PATH, or ``{files}/…``, nothing else.
        about: One line that tells agents what it does.
        files: Folder with its own files, copied when the pilot is frozen, read-only at ``{files}``; or null.
    """

    name: Identifier
    argv: Argv
    about: str
    files: RelativePath | None = None


class PilotCheck(Record):
    """One independent check of a finished candidate.

    Attributes:
        id: Its name, e.g. ``signature``.
        argv: What is started in the candidate's folder; exit code 0 is ``passed``, 1 ``failed``, any other
            end ``unavailable``. Its first word is as a tool's.
        hidden: Folder with files that only the check sees, read-only at ``{files}``; null: none.
        unavailable: Why this check cannot be made here: it is then so for every tuple; null: it can.
    """

    id: Identifier
    argv: Argv
    hidden: RelativePath | None = None
    unavailable: str | None = None


class PilotDrift(Record):
    """A change of the task's own files, made by the pilot after the agent has read the file that it is about.

    Attributes:
        path: The file whose reading triggers it, and which it changes.
        patch: File with its new content.
    """

    path: RelativePath
    patch: RelativePath


class PilotTask(Record):
    """One task as its owner writes it; paths are relative to ``pilot.yaml``.

    Attributes:
        id: Its name.
        fixture: Folder with the files that a candidate starts from.
        prompt: File with the prompt, the same for every variant.
        rubric: File with what a reviewer is to look at.
        checks: What decides acceptance.
        drift: A change in mid-trial; null: none.
    """

    id: Identifier
    fixture: RelativePath
    prompt: RelativePath
    rubric: RelativePath
    checks: Annotated[tuple[PilotCheck, ...], Field(min_length=1)]
    drift: PilotDrift | None = None


class PilotVariant(Record):
    """What is compared: how an agent is told to work and which programs it has. All else is the same.

    Attributes:
        id: Its name.
        guide: File that is put before each task's prompt; null: nothing is.
        tools: Names of the programs that its agents may call; reading and writing they always may.
    """

    id: Identifier
    guide: RelativePath | None = None
    tools: tuple[Identifier, ...] = ()


class PilotModel(Record):
    """The one model configuration of a pilot. Nothing replaces it, whatever a provider answers.

    Attributes:
        harness: What starts the agent: a command, or a preset of one of the known command-line tools.
        model: The model's id, null for scripts and persons.
        decoding: Decoding settings as the tool names them, recorded as they are.
        token_accounting: Which counter the token figures come from; ``none`` where nothing counts.
        agent: How the agent is started, which keys and hosts it has.
        scripts: For agents that are scripts: folder with them, copied when the pilot is frozen, read-only at
            ``/pilot/scripts``; the pilot's interpreter starts them unless the agent names an executable.
    """

    harness: Literal["command", "claude", "codex"]
    model: str | None = None
    decoding: dict[str, str] = Field(default_factory=dict)
    token_accounting: Literal["provider", "cli", "none"] = "none"  # noqa: S105
    agent: LaneAgent
    scripts: RelativePath | None = None


class PilotPolicy(Record):
    """What every tuple may use.

    Attributes:
        trial_s: Seconds after which an agent is ended.
        call_s: Seconds after which one call of the gateway is ended.
        check_s: Seconds after which one check is ended.
        calls: Calls of the gateway in one trial; the next one is refused.
        file_bytes: Largest file that a call reads or writes.
        wire_bytes: Bytes that may cross one trial's wire; beyond them the trial is ended.
        caps: What one trial's agent may use at worst; null is uncapped. Where an agent can spend money,
            ``micro_usd`` has to be stated.
        limits: What an agent, a call and a check each may use of the machine.
    """

    trial_s: PositiveSeconds
    call_s: PositiveSeconds
    check_s: PositiveSeconds
    calls: Annotated[int, Field(ge=1)]
    file_bytes: Annotated[int, Field(ge=1)]
    wire_bytes: Annotated[int, Field(ge=1)]
    caps: LaneBudget = LaneBudget()
    limits: Limits


class PairedDraft(Record):
    """A paired pilot as its owner writes it in ``pilot.yaml``.

    Attributes:
        python: Interpreter for ``{python}``, absolute; ``auto``: the one that runs roundkit.
    """

    format: Literal["roundkit-pilot/1"]
    kind: Literal["paired"]
    pilot_id: Identifier
    campaign_id: Identifier
    question: str
    seed: Count
    repetitions: Annotated[int, Field(ge=1)]
    variants: Annotated[tuple[PilotVariant, ...], Field(min_length=2)]
    tasks: Annotated[tuple[PilotTask, ...], Field(min_length=1)]
    tools: tuple[PilotTool, ...] = ()
    model: PilotModel
    policy: PilotPolicy
    authorization: Authorization | None = None
    python: str = "auto"


class FrozenTask(Record):
    """One task of a frozen plan: the draft's, with the digests of what it names.

    Attributes:
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
    """One variant of a frozen plan, with the digest of its guide; null without one."""

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

    order: Annotated[int, Field(ge=1)]
    task: Identifier
    variant: Identifier
    repetition: Annotated[int, Field(ge=1)]

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
        frozen_utc: When it was frozen.
        repository_revision: Commit of the repository that ``pilot.yaml`` lies in; null outside of one.
        provenance: What plays the agents.
        tasks: Tasks with their digests, in the draft's order.
        variants: Variants with theirs.
        schedule: Every expected tuple once, in the order in which they run.
        schedule_sha256: Digest of the canonical JSON of the schedule.
        runner: What froze it, and is to run it.
        runtime: Interpreter for ``{python}`` in programs and checks, and what it reads.
        tools_sha256: Tree digest of each tool's own files, by the tool's name.
        scripts_sha256: Tree digest of a scripted agent's program; null without one.
    """

    format: Literal["roundkit-paired-plan/1"]
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
