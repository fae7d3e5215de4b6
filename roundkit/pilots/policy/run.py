"""``pilot run`` of a policy pilot: every run of the schedule, each in a fresh copy, by real rounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from roundkit.core.clock import both_clocks, now_utc
from roundkit.core.errors import RoundkitError, refuse
from roundkit.core.files import atomic_write, sync_folder, write_new
from roundkit.core.progress import SILENT, Progress
from roundkit.evidence import policy_layout as layout
from roundkit.evidence.policy_files import run_files
from roundkit.measure.trees import remove_tree
from roundkit.models.clocks import ClockPair
from roundkit.models.policy_plan import PolicySlot
from roundkit.models.policy_run import (
    PolicyDecision,
    PolicyEnd,
    PolicyLaunch,
    PolicyRunRecord,
    PolicyStart,
    RunProcess,
)
from roundkit.pilots.chain import head_of
from roundkit.pilots.policy.authority import refuse_unauthorized
from roundkit.pilots.policy.folder import PolicyFolder, open_policy, read_record, read_rounds
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
        Refused: ``not-a-pilot``, ``plan-changed``, ``pilot-running``, ``unknown-run``, ``slot-used``,
            ``chain-broken``, ``decision-changed``, or ``not-authorized``, where the pilot is blocked.
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
    _use_slot(pilot, slot)
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
        raise RunStopped(
            f"{stopped}; {slot.run_id} is kept as aborted, and the same command goes on with the next run"
        ) from stopped
    except (RoundkitError, OSError) as error:
        report(f"{slot.run_id} broke: {error}")
        _write_end(pilot, slot, "error", _first_line(error))
    _end_work(pilot, slot, report)
    return _write_record(pilot, slot)


def _use_slot(pilot: PolicyFolder, slot: PolicySlot) -> None:
    """Take a slot for good. Its folder comes with its start, which says what was before it."""
    start = PolicyStart(
        format="roundkit-policy-start/1",
        plan_sha256=pilot.plan.digest(),
        previous_sha256=head_of(pilot.chain()),
        run_id=slot.run_id,
        order=slot.order,
        started_utc=now_utc(),
    )
    target = pilot.run(slot)
    making = target.with_name(f".{target.name}.starting")
    remove_tree(making)
    (making / layout.ROUNDS).mkdir(parents=True)
    write_new(making / layout.START, start.to_bytes())
    making.rename(target)
    sync_folder(target.parent)


def _note_launch(pilot: PolicyFolder, slot: PolicySlot) -> None:
    """Start the run's clock, right before its first launch."""
    path = pilot.run(slot) / layout.LAUNCH
    if path.exists():
        return
    clock = ClockPair.of(both_clocks())
    moment = PolicyLaunch(
        format="roundkit-policy-launch/1",
        plan_sha256=pilot.plan.digest(),
        run_id=slot.run_id,
        launched_utc=clock.utc if clock is not None else now_utc(),
        clock=clock,
    )
    write_new(path, moment.to_bytes())


def _bury_broken(pilot: PolicyFolder, report: Report) -> None:
    """Keep what a killed process left as aborted, with the evidence of the rounds that it had closed."""
    for begun in (pilot.root / layout.RUNS).glob(".*.starting"):
        remove_tree(begun)
    for place in (pilot.root, *map(pilot.run, pilot.plan.schedule)):
        # What a writer left that was killed before it had its file whole: no record, and no evidence.
        for part in place.glob(".*.json.*.tmp"):
            part.unlink()
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
    end = read_record(folder / layout.END, PolicyEnd)
    assert end is not None
    launched = read_record(folder / layout.LAUNCH, PolicyLaunch)
    rounds = read_rounds(pilot.rounds(slot))
    record = derive_run(pilot.plan, slot, end, launched, rounds, run_files(folder))
    atomic_write(folder / layout.RECORD, record.to_bytes())
    return record


def _write_end(pilot: PolicyFolder, slot: PolicySlot, process: RunProcess, detail: str) -> None:
    clock = ClockPair.of(both_clocks())
    end = PolicyEnd(
        format="roundkit-policy-end/1",
        plan_sha256=pilot.plan.digest(),
        run_id=slot.run_id,
        process=process,
        detail=detail,
        noted_utc=clock.utc if clock is not None else now_utc(),
        clock=clock,
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
    stands = read_record(path, PolicyDecision)
    if stands is None:
        atomic_write(path, decision.to_bytes())
    elif stands != decision:
        raise refuse(
            "decision-changed",
            f"{layout.DECISION} says {stands.decision!r} and is not what follows from the runs",
            place=str(path),
            remedy="restore it from a copy, or remove it and run again",
        )
    report(f"decision: {decision.decision}; {'; '.join(decision.reasons)}")
    return decision


def run_sentence(record: PolicyRunRecord) -> str:
    """Say what came of a run."""
    if record.process != "completed":
        return f"{record.process}: {record.detail}"
    gain = f"gain {record.final_gain:.2%}" if record.final_gain is not None else "no gain"
    if record.target_s is None and not record.censored:
        return f"no time: {record.detail}"
    if record.target_s is not None:
        return f"target reached after {record.target_s:.1f} s, {gain}"
    return f"censored ({record.end}) after {record.wall_s or 0.0:.1f} s, {gain}"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
