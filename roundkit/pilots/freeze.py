"""``pilot prepare`` for a paired pilot: from ``pilot.yaml`` to a frozen folder, or to all reasons why not."""

from __future__ import annotations

import platform
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import roundkit
from roundkit.core.clock import now_utc
from roundkit.core.errors import Refusal, Refused, refuse
from roundkit.core.files import sync_folder, write_json
from roundkit.core.git import Repository
from roundkit.core.process import CommandFailed
from roundkit.core.progress import SILENT, Progress
from roundkit.evidence import pilot_layout as layout
from roundkit.host.devices import machine_identity
from roundkit.models.base import IDENTIFIER_LENGTH
from roundkit.models.pilot_plan import (
    FrozenTask,
    FrozenVariant,
    PairedDraft,
    PairedPlan,
    PilotModel,
    PilotTask,
    PilotVariant,
    Runner,
)
from roundkit.models.round_plan import FrozenRuntime
from roundkit.pilots.inputs import Input, changing, copy_still, digest_of, inputs_of, kind_problem, writers
from roundkit.rounds.prepare_files import Authored, read_authored
from roundkit.rounds.prepare_presets import with_preset
from roundkit.rounds.prepare_runtime import find_runtime
from roundkit.rules.pilot_answers import OWN_TOOLS
from roundkit.rules.pilot_matrix import attempt_name
from roundkit.rules.pilot_order import schedule, schedule_digest
from roundkit.rules.pilot_programs import program_problem

Place = Callable[..., str]


def freeze_paired(
    draft_file: Path, out: Path, *, now: datetime | None = None, progress: Progress = SILENT
) -> PairedPlan:
    """Freeze a paired pilot into a new folder.

    Args:
        draft_file: The pilot, YAML.
        out: The pilot's folder; it may exist only when it is empty.
        now: The time of freezing; the clock's unless given.
        progress: Shows how far it is.

    Returns:
        The frozen plan; its digest is what is posted before the first run.

    Raises:
        Refused: with every problem found; nothing was written.
    """
    authored = read_authored(draft_file, PairedDraft)
    draft = authored.model
    if draft is None:
        raise Refused(authored.refusals)
    target = out.parent.resolve() / out.name
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise refuse(
            "folder-not-empty", f"{out} is there and not empty", place="--out", remedy="name a new folder"
        )
    top = authored.path.resolve().parent
    named = list(inputs_of(draft, top))
    refusals = [*authored.refusals, *_problems(draft, named, authored.at)]
    runtime, more = find_runtime(draft.python, authored.at("python"))
    if runtime is None or refusals or more:
        raise Refused([*refusals, *more])
    moment = now or now_utc()
    with progress.task(f"prepare {draft.pilot_id}", len(named), "inputs") as task:
        return _write(draft, authored, named, runtime, moment, target, task.advance)


def _write(
    draft: PairedDraft,
    authored: Authored[PairedDraft],
    named: list[Input],
    runtime: FrozenRuntime,
    moment: datetime,
    target: Path,
    advance: Callable[[], None],
) -> PairedPlan:
    """Build the folder beside its place and move it there, so that it is whole or absent."""
    busy = list(writers([*(found.source for found in named), target]))
    if busy:
        raise Refused(busy)
    target.parent.mkdir(parents=True, exist_ok=True)
    building = target.with_name(f".{target.name}.{secrets.token_hex(6)}.preparing")
    try:
        building.mkdir(mode=0o755)
        digests = {}
        for found in named:
            digests[found.at] = copy_still(found, building)
            advance()
        _check_still(named, digests)
        plan = _plan(draft, digests, runtime, moment, authored.path.resolve().parent)
        for name in (layout.TRIALS, layout.SETUP, layout.REPLAYS):
            (building / name).mkdir()
        write_json(building / layout.PLAN, plan.to_json_value())
        _move(building, target)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return plan


def _check_still(named: list[Input], digests: dict[str, str]) -> None:
    """Look once more when all copies are made: together they have to be one state."""
    for found in named:
        if digest_of(found.source) != digests[found.at]:
            raise changing(f"{found.source} changed while the pilot was frozen")


def _move(building: Path, target: Path) -> None:
    try:
        building.rename(target)
    except OSError as error:
        raise changing(f"{target} was filled meanwhile: {error.strerror}") from None
    sync_folder(target.parent)


def _problems(draft: PairedDraft, named: list[Input], at: Place) -> Iterator[Refusal]:
    yield from _name_problems(draft, at)
    yield from _program_problems(draft, at)
    for found in named:
        problem = kind_problem(found)
        if problem is not None:
            yield Refusal("input-kind", problem, at(*found.place), "name a file or a folder of regular files")
    for found in (found for found in named if found.place[-1] in {"prompt", "guide"}):
        try:
            found.source.read_bytes().decode("utf-8")
        except ValueError:
            yield Refusal("not-text", f"{found.source} is not UTF-8", at(*found.place), "write it as UTF-8")
        except OSError:
            continue  # told above


def _name_problems(draft: PairedDraft, at: Place) -> Iterator[Refusal]:
    lists = {
        "tasks": [task.id for task in draft.tasks],
        "variants": [variant.id for variant in draft.variants],
        "tools": [tool.name for tool in draft.tools],
    }
    for kind, names in lists.items():
        for name, times in Counter(names).items():
            if times > 1:
                yield Refusal(
                    "name-twice", f"{name!r} is there {times} times", at(kind), "give each its own name"
                )
    for kind in ("tasks", "variants"):
        for number, name in enumerate(lists[kind]):
            if "." in name:
                what = f"{name!r} holds a dot, which stands between the parts of a tuple"
                yield Refusal("name-with-dot", what, at(kind, number, "id"), "use a hyphen")
    for number, name in enumerate(lists["tools"]):
        if name in OWN_TOOLS:
            yield Refusal(
                "tool-name", f"{name!r} is the gateway's own", at("tools", number, "name"), "rename it"
            )
    for number, task in enumerate(draft.tasks):
        for check, times in Counter(check.id for check in task.checks).items():
            if times > 1:
                place = at("tasks", number, "checks")
                yield Refusal(
                    "name-twice", f"{check!r} is there {times} times", place, "give each its own name"
                )
    for number, variant in enumerate(draft.variants):
        for name in sorted(set(variant.tools) - set(lists["tools"])):
            place = at("variants", number, "tools")
            yield Refusal("unknown-tool", f"there is no tool {name!r}", place, "define it under `tools`")
    slots = schedule(lists["tasks"], lists["variants"], draft.repetitions, draft.seed)
    longest = max(map(attempt_name, slots), key=len)
    if len(longest) > IDENTIFIER_LENGTH:
        what = f"{longest!r} is longer than {IDENTIFIER_LENGTH} characters"
        yield Refusal("name-too-long", what, at("tasks"), "shorten the ids of tasks or variants")


def _program_problems(draft: PairedDraft, at: Place) -> Iterator[Refusal]:
    agent = draft.model.agent
    if draft.model.harness == "command" and agent.command is None and agent.preset is None:
        how = "write `command`, or name a `preset`"
        yield Refusal("command-missing", "nothing says what is started", at("model", "agent"), how)
    remedy = "name {python}, a program on the boundary's PATH, or a file below {files}"
    for number, tool in enumerate(draft.tools):
        problem = program_problem(tool.argv, has_files=tool.files is not None)
        if problem is not None:
            yield Refusal("program-outside", problem, at("tools", number, "argv"), remedy)
    for number, task in enumerate(draft.tasks):
        for position, check in enumerate(task.checks):
            problem = program_problem(check.argv, has_files=check.hidden is not None)
            if problem is not None:
                place = at("tasks", number, "checks", position, "argv")
                yield Refusal("program-outside", problem, place, remedy)


def _plan(
    draft: PairedDraft, digests: dict[str, str], runtime: FrozenRuntime, moment: datetime, top: Path
) -> PairedPlan:
    slots = schedule(
        [task.id for task in draft.tasks],
        [variant.id for variant in draft.variants],
        draft.repetitions,
        draft.seed,
    )
    return PairedPlan(
        format="roundkit-paired-plan/1",
        kind="paired",
        pilot_id=draft.pilot_id,
        campaign_id=draft.campaign_id,
        question=draft.question,
        frozen_utc=moment,
        repository_revision=_revision(top),
        seed=draft.seed,
        repetitions=draft.repetitions,
        provenance=draft.model.agent.provenance,
        tasks=tuple(_task(task, digests) for task in draft.tasks),
        variants=tuple(_variant(variant, digests) for variant in draft.variants),
        tools=draft.tools,
        model=_model(draft.model, runtime),
        policy=draft.policy,
        authorization=draft.authorization,
        schedule=slots,
        schedule_sha256=schedule_digest(slots),
        runner=Runner(
            version=roundkit.__version__,
            revision=_own_revision(),
            python=platform.python_version(),
            machine=machine_identity(),
        ),
        runtime=runtime,
        tools_sha256={
            tool.name: digests[layout.tool_files(tool.name)] for tool in draft.tools if tool.files is not None
        },
        scripts_sha256=digests.get(layout.SCRIPTS),
    )


def _task(task: PilotTask, digests: dict[str, str]) -> FrozenTask:
    hidden = [check.id for check in task.checks if check.hidden is not None]
    return FrozenTask(
        task=task,
        fixture_sha256=digests[layout.task_input(task.id, "fixture")],
        prompt_sha256=digests[layout.task_input(task.id, "prompt")],
        rubric_sha256=digests[layout.task_input(task.id, "rubric")],
        hidden_sha256={name: digests[layout.task_input(task.id, f"hidden/{name}")] for name in hidden},
        drift_sha256=digests.get(layout.task_input(task.id, "drift")),
    )


def _variant(variant: PilotVariant, digests: dict[str, str]) -> FrozenVariant:
    return FrozenVariant(variant=variant, guide_sha256=digests.get(layout.variant_guide(variant.id)))


def _model(model: PilotModel, runtime: FrozenRuntime) -> PilotModel:
    """Freeze how agents are started: a preset as its template, scripts with the frozen interpreter."""
    agent = with_preset(model.agent) if model.harness == "command" else model.agent
    if model.scripts is not None and agent.executable is None:
        agent = agent.model_copy(update={"executable": runtime.python})
    return model.model_copy(update={"agent": agent})


def _own_revision() -> str | None:
    """Return the commit of roundkit's own checkout; null for an installed package, wherever it lies."""
    top = Path(roundkit.__file__).parent.parent
    return _revision(top) if (top / ".git").exists() else None


def _revision(place: Path) -> str | None:
    """Return the commit of the repository that a folder lies in; null outside of one."""
    try:
        return Repository(place).resolve("HEAD")
    except CommandFailed:
        return None
