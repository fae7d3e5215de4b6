"""What ``roundkit pilot`` does with pilots of kind ``paired``."""

from __future__ import annotations

from pathlib import Path

from roundkit.core.progress import Progress
from roundkit.models.pilot_trial import TrialRecord
from roundkit.pilots.cohort import run_cohort, run_setup, standing
from roundkit.pilots.folder import PilotFolder, read_plan
from roundkit.pilots.freeze import freeze_paired
from roundkit.pilots.interventions import grown_ledgers
from roundkit.pilots.kinds import Report
from roundkit.rules.pilot_chain import head_line
from roundkit.rules.pilot_matrix import order_notes


def prepare(draft_file: Path, out: Path, progress: Progress) -> Report:
    """Freeze a pilot into a folder.

    Raises:
        Refused: with every problem found; nothing was written.
    """
    plan = freeze_paired(draft_file, out, progress=progress)
    first = {variant.variant.id: 0 for variant in plan.variants}
    groups = plan.schedule[:: len(plan.variants)]
    for slot in groups:
        first[slot.variant] += 1
    counts = ", ".join(f"{variant} {count}" for variant, count in first.items())
    return Report(
        (
            f"{plan.pilot_id}: {len(plan.schedule)} tuples; first in its group: {counts}",
            f"schedule {plan.schedule_sha256}",
            f"digest {plan.digest()}",
        )
    )


def run(root: Path, only: str | None, setup: str | None, progress: Progress) -> Report:
    """Run the tuples that are left, one of them, or a setup attempt.

    Raises:
        Refused: nothing more was started, for the reason given.
        ConfinementUnavailable: the host cannot build a boundary.
    """
    folder = PilotFolder(root.resolve())
    plan = read_plan(folder)
    if setup is not None:
        task, _, variant = setup.partition(".")
        record = run_setup(folder, plan, task, variant, progress=progress)
        return _told([record], head_line(standing(folder, plan).chain, "attempt"))
    records = run_cohort(folder, plan, only=only, progress=progress)
    found = standing(folder, plan)
    left = len(found.open)
    how = f"{left} of {len(plan.schedule)} tuples are left" if left else "every tuple was run"
    return _told(records, how, head_line(found.chain, "attempt"))


def status(root: Path) -> Report:
    """Say how a pilot stands; nothing is changed by that."""
    folder = PilotFolder(root.resolve())
    plan = read_plan(folder)
    found = standing(folder, plan)
    lines = [
        f"{plan.pilot_id}: {len(plan.schedule) - len(found.open)} of {len(plan.schedule)} tuples started"
    ]
    if found.blocked is not None:
        lines.append(f"blocked: {found.blocked}")
    if found.running:
        lines.append("somebody runs it now")
    lines += [f"{attempt.name}: {_line(attempt.record)}" for attempt in (*found.attempts, *found.setup)]
    lines += [f"ran after its turn: {name}" for name in order_notes(found.attempts, found.chain.order)]
    lines += [f"broken chain: {each.where} {each.detail}" for each in found.chain.problems]
    lines += [f"next: {slot.tuple_id}" for slot in found.open[:1]]
    lines += [f"ledger {each.sha256} of {each.attempt}" for each in grown_ledgers(root, found.attempts)]
    lines.append(head_line(found.chain, "attempt"))
    return Report(tuple(lines))


def _told(records: list[TrialRecord], *more: str) -> Report:
    kinds = ("completed", "timeout", "error", "aborted")
    counts = {kind: sum(record.process == kind for record in records) for kind in kinds}
    ends = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    passed = sum(
        record.acceptance is not None and record.acceptance.outcome == "passed" for record in records
    )
    ran = f"{len(records)} run: {ends or 'none'}; {passed} accepted"
    return Report((ran, *more))


def _line(record: TrialRecord | None) -> str:
    if record is None:
        return "no record yet"
    accepted = "not checked" if record.acceptance is None else record.acceptance.outcome
    return f"{record.process}, {accepted}, {record.calls} calls"
