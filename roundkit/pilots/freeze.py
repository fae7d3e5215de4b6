"""``pilot prepare`` for a paired pilot: from ``pilot.yaml`` to a frozen folder, or to all reasons why not."""

from __future__ import annotations

import errno
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import roundkit
from roundkit.core.clock import now_utc
from roundkit.core.errors import Refused, refuse
from roundkit.core.files import atomic_write, whole_folder
from roundkit.core.git import Repository
from roundkit.core.process import CommandFailed
from roundkit.core.progress import SILENT, Progress
from roundkit.evidence import pilot_layout as layout
from roundkit.evidence.plan_seal import SEAL, seal_bytes
from roundkit.host.devices import machine_identity
from roundkit.models.pilot_draft import PairedDraft, PilotModel, PilotTask, PilotVariant
from roundkit.models.pilot_plan import FrozenTask, FrozenVariant, PairedPlan, Runner
from roundkit.models.round_plan import FrozenRuntime
from roundkit.pilots.draft_problems import draft_problems
from roundkit.pilots.inputs import Input, changing, copy_still, digest_of, inputs_of, writers
from roundkit.rounds.prepare_files import Authored, read_authored
from roundkit.rounds.prepare_presets import with_preset
from roundkit.rounds.prepare_runtime import find_runtime
from roundkit.rules.pilot_order import schedule, schedule_digest


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
    refusals = [*authored.refusals, *draft_problems(draft, named, authored.at)]
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
    with _filling(target), whole_folder(target) as building:
        digests = {}
        for found in named:
            digests[found.at] = copy_still(found, building)
            advance()
        _check_still(named, digests)
        plan = _plan(draft, digests, runtime, moment, authored.path.resolve().parent)
        for name in (layout.TRIALS, layout.SETUP, layout.REPLAYS):
            (building / name).mkdir()
        atomic_write(building / layout.PLAN, plan.to_bytes())
        atomic_write(building / SEAL, seal_bytes(plan.digest()))
    return plan


def _check_still(named: list[Input], digests: dict[str, str]) -> None:
    """Look once more when all copies are made: together they have to be one state."""
    for found in named:
        if digest_of(found.source) != digests[found.at]:
            raise changing(f"{found.source} changed while the pilot was frozen")


@contextmanager
def _filling(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
        raise changing(f"{target} was filled meanwhile: {error.strerror}") from None


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
        format="roundkit-paired-plan/2",
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
