"""The paired pilot as its owner writes it in ``pilot.yaml``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from roundkit.host.confine import Limits
from roundkit.models.base import (
    Argv,
    Count,
    Identifier,
    PositiveCount,
    PositiveSeconds,
    Record,
)
from roundkit.models.lane_agent import Authorization, LaneAgent
from roundkit.models.round_plan import LaneBudget

MOST_SLOTS = 10_000
"""Tuples or runs of one pilot: its folder is read whole, and has one folder for each of them."""

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
    calls: PositiveCount
    file_bytes: PositiveCount
    wire_bytes: PositiveCount
    caps: LaneBudget = LaneBudget()
    limits: Limits


class PairedDraft(Record):
    """A paired pilot as its owner writes it in ``pilot.yaml``.

    Attributes:
        variants: What is compared.
        tasks: What every variant is tried on.
        tools: Programs that agents may call, beside reading and writing.
        model: The one model configuration of all tuples.
        python: Interpreter for ``{python}``, absolute; ``auto``: the one that runs roundkit.
    """

    format: Literal["roundkit-pilot/1"]
    kind: Literal["paired"]
    pilot_id: Identifier
    campaign_id: Identifier
    question: str
    seed: Count
    repetitions: PositiveCount
    variants: Annotated[tuple[PilotVariant, ...], Field(min_length=2)]
    tasks: Annotated[tuple[PilotTask, ...], Field(min_length=1)]
    tools: tuple[PilotTool, ...] = ()
    model: PilotModel
    policy: PilotPolicy
    authorization: Authorization | None = None
    python: str = "auto"
