"""``pilot run`` of a policy pilot: every run of the schedule, each in a fresh copy, by real rounds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from roundkit.core.clock import now_utc
from roundkit.core.errors import RoundkitError, refuse
from roundkit.core.files import atomic_write, sync_folder
from roundkit.core.progress import SILENT, Progress
from roundkit.evidence import policy_layout as layout
from roundkit.measure.trees import remove_tree
from roundkit.models.base import Record
from roundkit.models.policy_plan import PolicySlot
from roundkit.models.policy_run import (
    PolicyDecision,
    PolicyEnd,
    PolicyLaunch,
    PolicyRunRecord,
    PolicyStart,
    RunProcess,
)
from roundkit.pilots.policy.authority import refuse_unauthorized
from roundkit.pilots.policy.folder import PolicyFolder, open_policy, read_rounds
from roundkit.pilots.policy.one_round import RunStopped, keep_broken, run_round
from roundkit.pilots.policy.orphans import end_former_rounds
from roundkit.pilots.policy.workplace import Workplace
from roundkit.rounds.locks import hold_lock
from roundkit.rules.policy_result import decision_of
from roundkit.rules.policy_run import RoundView, derive_run, step_after

Report = Callable[[str], None]


def run_policy(
    root: Path, *, only: str | None = None, report: Report, progress: Progress = SILENT
) -> PolicyDecision | None:
    """Run what is left of a pilot's schedule, in its order, and decide once every slot is used.

    A run that a killed process left is kept as aborted; its slot is used, and the next one goes on. After a
    run that broke the pilot stops, so that what broke it uses no more slots.

    Args:
        root: The pilot's folder.
        only: One run alone, e.g. ``P.2``; null: all that are left.
        report: Takes one line for each thing that happens.
        progress: Shows how many runs are done.

    Returns:
        The decision; null while slots are left.

    Raises:
        Refused: ``not-a-pilot``, ``plan-changed``, ``pilot-running``, ``unknown-run``, ``slot-used`` or
            ``not-authorized``, where the pilot is blocked.
        RunStopped: somebody stopped it; the run that was going on is kept as aborted.
    """
    pilot = open_policy(root)
    with hold_lock(pilot.lock, code="pilot-running", what="a run of this pilot"):
        _bury_broken(pilot, report)
        chosen = _chosen(pilot, only)
        with progress.task(f"pilot {pilot.plan.pilot_id}", len(chosen), "runs") as task:
            for slot in chosen:
                refuse_unauthorized(pilot)
                record = _run_slot(pilot, slot, report)
                report(f"{slot.run_id}: {run_sentence(record)}")
                task.advance()
                if record.process != "completed":
                    # Whatever broke it would most likely break the next one too, and use its slot.
                    report("the pilot stops here; run it again to go on with the next run")
                    break
        return _decide(pilot, report)


def _chosen(pilot: PolicyFolder, only: str | None) -> list[PolicySlot]:
    waiting = [slot for slot in pilot.plan.schedule if not pilot.run(slot).exists()]
    if only is None:
        return waiting
    named = [slot for slot in pilot.plan.schedule if slot.run_id == only]
    if not named:
        names = ", ".join(slot.run_id for slot in pilot.plan.schedule)
        raise refuse(
            "unknown-run", f"the pilot has no run {only!r}", place="--only", remedy=f"one of {names}"
        )
    if named[0] not in waiting:
        raise refuse(
            "slot-used",
            f"{only} has run, whatever came of it",
            place="--only",
            remedy="no run is repeated into its slot; prepare a new pilot for more",
        )
    return named


def _run_slot(pilot: PolicyFolder, slot: PolicySlot, report: Report) -> PolicyRunRecord:
    """Run one slot to its end by the rules, or to whatever breaks it."""
    start = PolicyStart(
        format="roundkit-policy-start/1",
        plan_sha256=pilot.plan.digest(),
        run_id=slot.run_id,
        order=slot.order,
        started_utc=now_utc(),
    )
    pilot.rounds(slot).mkdir(parents=True)
    _write_once(pilot.run(slot) / layout.START, start)
    work = Workplace(pilot, slot)
    try:
        work.make()
        views: list[RoundView] = []
        while not isinstance(lanes := step_after(pilot.plan, slot, views), str):
            report(f"{slot.run_id}: round {len(views) + 1} of {', '.join(lanes)}")
            folder = work.freeze_round(len(views) + 1, lanes)
            _note_launch(pilot, slot)
            views.append(run_round(folder, pilot.rounds(slot), report))
        _write_end(pilot, slot, "completed", "")
    except RunStopped as stopped:
        _write_end(pilot, slot, "aborted", _first_line(stopped))
        _end_work(pilot, slot, report)
        _write_record(pilot, slot)
        raise
    except (RoundkitError, OSError) as error:
        report(f"{slot.run_id} broke: {error}")
        _write_end(pilot, slot, "error", _first_line(error))
    _end_work(pilot, slot, report)
    return _write_record(pilot, slot)


def _note_launch(pilot: PolicyFolder, slot: PolicySlot) -> None:
    """Start the run's clock, right before its first launch."""
    path = pilot.run(slot) / layout.LAUNCH
    if path.exists():
        return
    moment = PolicyLaunch(
        format="roundkit-policy-launch/1",
        plan_sha256=pilot.plan.digest(),
        run_id=slot.run_id,
        launched_utc=now_utc(),
    )
    _write_once(path, moment)


def _bury_broken(pilot: PolicyFolder, report: Report) -> None:
    """Keep what a killed process left as aborted, with the evidence of the rounds that it had closed."""
    for slot in pilot.plan.schedule:
        folder = pilot.run(slot)
        if not folder.exists() or (folder / layout.RECORD).is_file():
            continue
        if not (folder / layout.END).is_file():
            report(f"{slot.run_id}: its process died; it is kept as aborted")
            _write_end(pilot, slot, "aborted", "the process that ran it died")
        for unfinished in pilot.rounds(slot).glob(".*.copying"):
            remove_tree(unfinished)
        _end_work(pilot, slot, report)
        _write_record(pilot, slot)


def _end_work(pilot: PolicyFolder, slot: PolicySlot, report: Report) -> None:
    work = Workplace(pilot, slot).root
    end_former_rounds(work, report)
    keep_broken(work, pilot.rounds(slot), pilot.run(slot) / layout.BROKEN)
    remove_tree(work)
    if pilot.work.is_dir() and not any(pilot.work.iterdir()):
        pilot.work.rmdir()


def _write_record(pilot: PolicyFolder, slot: PolicySlot) -> PolicyRunRecord:
    folder = pilot.run(slot)
    end = PolicyEnd.from_bytes((folder / layout.END).read_bytes(), place=layout.END)
    launched = folder / layout.LAUNCH
    launch_record = (
        PolicyLaunch.from_bytes(launched.read_bytes(), place=layout.LAUNCH) if launched.is_file() else None
    )
    moment = launch_record.launched_utc if launch_record else None
    record = derive_run(pilot.plan, slot, end, moment, read_rounds(pilot.rounds(slot)))
    atomic_write(folder / layout.RECORD, record.to_bytes())
    return record


def _write_end(pilot: PolicyFolder, slot: PolicySlot, process: RunProcess, detail: str) -> None:
    end = PolicyEnd(
        format="roundkit-policy-end/1",
        plan_sha256=pilot.plan.digest(),
        run_id=slot.run_id,
        process=process,
        detail=detail,
        noted_utc=now_utc(),
    )
    atomic_write(pilot.run(slot) / layout.END, end.to_bytes())


def _decide(pilot: PolicyFolder, report: Report) -> PolicyDecision | None:
    records = [record for slot in pilot.plan.schedule if (record := pilot.record(slot)) is not None]
    left = len(pilot.plan.schedule) - len(records)
    if left:
        report(f"nothing is decided: {left} of {len(pilot.plan.schedule)} runs are left")
        return None
    decision = decision_of(pilot.plan, records)
    path = pilot.root / layout.DECISION
    if not path.exists():
        atomic_write(path, decision.to_bytes())
    report(f"decision: {decision.decision}; {'; '.join(decision.reasons)}")
    return decision


def _write_once(path: Path, record: Record) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(record.to_bytes())
        stream.flush()
        os.fsync(stream.fileno())
    sync_folder(path.parent)


def run_sentence(record: PolicyRunRecord) -> str:
    """Say what came of a run."""
    if record.process != "completed":
        return f"{record.process}: {record.detail}"
    gain = f"gain {record.final_gain:.2%}" if record.final_gain is not None else "no gain"
    if record.target_s is not None:
        return f"target reached after {record.target_s:.1f} s, {gain}"
    return f"censored ({record.end}) after {record.wall_s or 0.0:.1f} s, {gain}"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
