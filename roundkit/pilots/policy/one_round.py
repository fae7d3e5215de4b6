"""One real round of a run: prepared, launched, driven, measured and closed; its evidence kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from roundkit.core.errors import RoundkitError
from roundkit.core.files import sync_folder
from roundkit.measure.trees import copy_tree, remove_tree
from roundkit.pilots.policy.folder import read_round
from roundkit.rounds import attempts
from roundkit.rounds.close import close
from roundkit.rounds.drive import drive_lanes
from roundkit.rounds.launch import launch
from roundkit.rounds.layout import RoundFolder, evidence_folder, read_plan
from roundkit.rounds.measuring import CloseStopped
from roundkit.rules.policy_run import RoundView

Report = Callable[[str], None]
_LEFT_OUT = frozenset({"repository.git", "secret"})


class RunStopped(RoundkitError):
    """A run was stopped from outside: a person, or a signal."""


class LaneNotDriven(RoundkitError):
    """A lane's agent was not started, so that the arms would not have had the same."""


def run_round(folder: RoundFolder, keep: Path, report: Report) -> RoundView:
    """Launch, drive, measure and close one frozen round; keep a copy of its evidence.

    Args:
        folder: The round.
        keep: Folder that takes the evidence, under the round's id.
        report: Takes one line for each thing that happens.

    Raises:
        RunStopped: somebody stopped an agent or the close.
        LaneNotDriven: a lane was refused.
        RoundkitError: whatever else breaks a round.
    """
    plan = read_plan(folder)
    launch(folder, posted_digest=plan.digest())
    said: list[str] = []

    def listen(line: str) -> None:
        said.append(line)
        report(line)

    driven = drive_lanes(folder, with_serve=True, report=listen)
    if driven.refused:
        reasons = [line for line in said if " not driven: " in line]
        raise LaneNotDriven("; ".join(reasons) or f"not driven: {', '.join(driven.refused)}")
    for lane in plan.lanes:
        records = attempts.read_account(folder, lane.id).records
        if not records:
            # Nothing of its budget is charged, so that such rounds would follow one another for ever.
            raise LaneNotDriven(f"lane {lane.id} has no attempt: its harness {lane.harness} started nobody")
        runs = [record.run for record in records if record.run]
        if any(run.end_reason == "killed" for run in runs):
            raise RunStopped(f"the agent of lane {lane.id} was stopped from outside")
    try:
        close(folder, report=report)
    except CloseStopped as stopped:
        raise RunStopped(str(stopped)) from stopped
    return _kept(evidence_folder(plan), keep / plan.round_id)


def keep_broken(work: Path, rounds: Path, target: Path) -> None:
    """Keep what is left of the rounds below a folder that have no evidence: plans, stores, logs.

    Args:
        work: A run's folder with its round directories.
        rounds: The evidence of its closed rounds.
        target: Where the others are kept.
    """
    for plan in sorted(work.glob("*/round-plan.json")):
        source = plan.parent
        if (rounds / source.name).exists() or (target / source.name).exists():
            continue
        making = target / f".{source.name}.copying"
        remove_tree(making)
        target.mkdir(exist_ok=True)
        copy_tree(RoundFolder(source).store, making, leave_out=_is_left_out)
        (making / plan.name).write_bytes(plan.read_bytes())
        making.rename(target / source.name)


def _is_left_out(path: str) -> bool:
    return path.partition("/")[0] in _LEFT_OUT or path.endswith((".lock", ".holder"))


def _kept(source: Path, target: Path) -> RoundView:
    making = target.with_name(f".{target.name}.copying")
    remove_tree(making)
    copy_tree(source, making)
    making.rename(target)
    sync_folder(target.parent)
    return read_round(target)
