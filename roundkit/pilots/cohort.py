"""A cohort: the frozen order's next tuples, one after the other, each in its own slot and once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from roundkit.core.clock import now_utc
from roundkit.core.errors import Refused, refuse
from roundkit.core.progress import SILENT, Progress
from roundkit.evidence import pilot_layout as layout
from roundkit.measure.trees import remove_tree
from roundkit.models.pilot_plan import PairedPlan, Slot
from roundkit.models.pilot_trial import TrialRecord
from roundkit.pilots.chain import head_of
from roundkit.pilots.folder import PilotFolder, TrialPlace, attempts_in, setup_place, slot_place
from roundkit.pilots.inputs import check_inputs
from roundkit.pilots.interventions import grown_ledgers
from roundkit.pilots.trial import Trial
from roundkit.pilots.trial_record import abandon
from roundkit.rounds.locks import hold_lock, is_held
from roundkit.rules.pilot_authority import pilot_refusal
from roundkit.rules.pilot_chain import Chain
from roundkit.rules.pilot_matrix import Attempt, attempts_chain, open_slots


@dataclass(frozen=True)
class Standing:
    """How a pilot stands.

    Attributes:
        plan: The frozen plan.
        attempts: Attempts at the matrix.
        setup: Attempts outside of it.
        running: Whether somebody runs tuples now.
        blocked: Why nothing may start; null where something may.
    """

    plan: PairedPlan
    attempts: tuple[Attempt, ...]
    setup: tuple[Attempt, ...]
    running: bool
    blocked: str | None

    @property
    def chain(self) -> Chain:
        """All attempts in the order in which they were made."""
        return attempts_chain((*self.attempts, *self.setup))

    @property
    def open(self) -> list[Slot]:
        """Slots in which nothing was started, in the frozen order."""
        return open_slots(self.plan, self.attempts)


def standing(folder: PilotFolder, plan: PairedPlan) -> Standing:
    """Look at a pilot; nothing is changed by that."""
    attempts, setup = tuple(attempts_in(folder.trials)), tuple(attempts_in(folder.setup))
    refusal = pilot_refusal(plan, [attempt.record for attempt in (*attempts, *setup)], now_utc())
    blocked = None if refusal is None else refusal.message
    return Standing(plan, attempts, setup, is_held(folder.lock), blocked)


def run_cohort(
    folder: PilotFolder, plan: PairedPlan, *, only: str | None = None, progress: Progress = SILENT
) -> list[TrialRecord]:
    """Run the tuples that were not started yet, in the frozen order, or one of them.

    Args:
        folder: The pilot's folder.
        plan: Its frozen plan.
        only: The one tuple to run; null runs all that are left.
        progress: Shows how far it is.

    Returns:
        The records of this call's tuples.

    Raises:
        Refused: ``pilot-running``, ``plan-unsealed``, ``not-authorized``, ``input-changed``, ``slot-used``,
            ``unknown-tuple``, ``chain-broken``, or what making an agent ready raises.
        ConfinementUnavailable: the host cannot build a boundary.
    """
    with _held(folder, plan, progress):
        slots = _wanted(plan, standing(folder, plan), only)
        records = []
        with progress.task(f"pilot {plan.pilot_id}", len(slots), "tuples") as task:
            for slot in slots:
                records.append(_run(folder, plan, slot_place(folder, slot), progress))
                task.advance()
    return records


def run_setup(
    folder: PilotFolder, plan: PairedPlan, task: str, variant: str, *, progress: Progress = SILENT
) -> TrialRecord:
    """Try a task with a variant outside the matrix; the attempt is kept, and counts for nothing.

    Raises:
        Refused: as :func:`run_cohort`.
        ConfinementUnavailable: the host cannot build a boundary.
    """
    known = {(slot.task, slot.variant) for slot in plan.schedule}
    if (task, variant) not in known:
        raise _unknown(f"{task}.{variant}", sorted({f"{one}.{other}" for one, other in known}))
    with _held(folder, plan, progress):
        return _run(folder, plan, setup_place(folder, task, variant), progress)


@contextmanager
def _held(folder: PilotFolder, plan: PairedPlan, progress: Progress) -> Iterator[None]:
    """Be the only one that runs tuples, with nothing left open by one who died."""
    folder.work.mkdir(exist_ok=True)
    with hold_lock(folder.lock, code="pilot-running", what="a run of this pilot"):
        _check_bound(standing(folder, plan))
        for left in (path for path in folder.work.iterdir() if path.is_dir()):
            remove_tree(left)
        for place in _unfinished(folder, plan):
            abandon(plan, place)
            progress.say(f"{place.name}: aborted; its runner had ended before it did")
        check_inputs(folder, plan)
        yield


def _check_bound(found: Standing) -> None:
    """Refuse a plan that nothing binds: an older one has no seal, and is bound by what was run of it."""
    if not found.plan.is_sealed and not (found.attempts or found.setup):
        raise refuse(
            "plan-unsealed",
            f"a plan of {found.plan.format} has no seal, and nothing was run of it that names its digest",
            place=layout.PLAN,
            remedy="freeze the pilot anew with `roundkit pilot prepare`; its plan has a seal then",
        )


def _unfinished(folder: PilotFolder, plan: PairedPlan) -> Iterator[TrialPlace]:
    """Yield the attempts whose runner died: nobody else holds the lock."""
    slots = {slot_place(folder, slot).attempt: slot for slot in plan.schedule}
    for attempt in attempts_in(folder.trials):
        if attempt.name in slots and not (folder.trials / attempt.name / layout.RECORD).exists():
            yield slot_place(folder, slots[attempt.name])
    for attempt in attempts_in(folder.setup):
        task, _, rest = attempt.name.partition(".")
        path = folder.setup / attempt.name
        if not (path / layout.RECORD).exists():
            yield TrialPlace(path, attempt.name, task, rest.rpartition("-")[0], None)


def _wanted(plan: PairedPlan, found: Standing, only: str | None) -> list[Slot]:
    if only is None:
        return found.open
    wanted = [slot for slot in plan.schedule if slot.tuple_id == only]
    if not wanted:
        raise _unknown(only, [slot.tuple_id for slot in plan.schedule])
    if wanted[0] not in found.open:
        raise refuse(
            "slot-used",
            f"{only} was attempted before; a slot is used once",
            remedy="failed and aborted attempts stay; freeze another pilot for another try",
        )
    return wanted


def _run(folder: PilotFolder, plan: PairedPlan, place: TrialPlace, progress: Progress) -> TrialRecord:
    found = standing(folder, plan)
    records = [attempt.record for attempt in (*found.attempts, *found.setup)]
    refusal = pilot_refusal(plan, records, now_utc())
    if refusal is not None:
        raise Refused(refusal)
    ledgers = tuple(grown_ledgers(folder.root, found.attempts))
    record = Trial(folder, plan, place, previous=head_of(found.chain), ledgers=ledgers).run()
    accepted = record.acceptance.outcome if record.acceptance is not None else "not checked"
    why = f" ({record.detail})" if record.detail else ""
    progress.say(f"{place.name}: {record.process}{why}; {accepted}; {record.calls} calls")
    return record


def _unknown(name: str, known: list[str]) -> Refused:
    return refuse(
        "unknown-tuple",
        f"the plan has no {name!r}",
        place="--only" if name.count(".") > 1 else "--setup",
        remedy=f"it has: {', '.join(known)}",
    )
