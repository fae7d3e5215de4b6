"""Acceptance decided again, from archived bytes alone; a difference from the record is a finding."""

from __future__ import annotations

from contextlib import suppress

from roundkit.core.clock import now_utc
from roundkit.core.errors import Refusal, Refused, refuse
from roundkit.core.files import write_new
from roundkit.core.progress import SILENT, Progress
from roundkit.evidence import pilot_layout as layout
from roundkit.models.pilot_plan import PairedPlan
from roundkit.models.pilot_trial import ReplayRecord, TrialRecord
from roundkit.pilots.acceptance import decide
from roundkit.pilots.archive import check_archive
from roundkit.pilots.folder import PilotFolder, attempts_in
from roundkit.pilots.inputs import check_inputs
from roundkit.rounds.prepare_runtime import find_runtime
from roundkit.rules.pilot_outcome import same_acceptance


def replay(
    folder: PilotFolder,
    plan: PairedPlan,
    *,
    only: str | None = None,
    python: str | None = None,
    progress: Progress = SILENT,
) -> list[ReplayRecord]:
    """Decide the acceptance of finished tuples again, and leave a record of each.

    Args:
        folder: The pilot's folder.
        plan: Its frozen plan.
        only: One tuple; null decides all that were decided.
        python: Interpreter in place of the frozen one, for another machine.
        progress: Shows how far it is.

    Raises:
        Refused: ``input-changed`` or ``archive-changed``: something is not what was recorded;
            ``nothing-to-replay``: no such tuple was decided; ``interpreter-missing``.
        ConfinementUnavailable: the host cannot confine a check.
    """
    check_inputs(folder, plan)
    plan = _runnable(plan, python)
    chosen = [record for record in _decided(folder) if only is None or record.tuple_id == only]
    if not chosen:
        raise refuse(
            "nothing-to-replay",
            f"{only or 'no tuple'} has an acceptance that could be decided again",
            place=str(folder.trials),
            remedy="run the pilot first; aborted attempts are not decided",
        )
    _check_archives(folder, chosen)
    folder.replays.mkdir(exist_ok=True)
    replays = []
    with progress.task(f"replay {plan.pilot_id}", len(chosen), "tuples") as task:
        for record in chosen:
            replays.append(_replay(folder, plan, record))
            task.advance()
    return replays


def _decided(folder: PilotFolder) -> list[TrialRecord]:
    found = (attempt.record for attempt in attempts_in(folder.trials))
    return [record for record in found if record is not None and record.acceptance is not None]


def _check_archives(folder: PilotFolder, records: list[TrialRecord]) -> None:
    refusals: list[Refusal] = []
    for record in records:
        try:
            check_archive(folder.trials / record.attempt, record)
        except Refused as refused:
            refusals += refused.refusals
    if refusals:
        raise Refused(refusals)


def _replay(folder: PilotFolder, plan: PairedPlan, record: TrialRecord) -> ReplayRecord:
    assert record.acceptance is not None
    assert record.tuple_id is not None
    slot = next(slot for slot in plan.schedule if slot.tuple_id == record.tuple_id)
    candidate = folder.trials / record.attempt / layout.CANDIDATE
    again = decide(plan, plan.task(slot.task), folder.root, candidate)
    made = ReplayRecord(
        format="roundkit-pilot-replay/2",
        tuple_id=record.tuple_id,
        attempt=record.attempt,
        replayed_utc=now_utc(),
        acceptance=again,
        agrees=same_acceptance(record.acceptance, again),
    )
    with suppress(FileExistsError):  # by its name, that is this very record
        write_new(folder.replays / layout.replay_name(made.tuple_id, made.digest()), made.to_bytes())
    return made


def _runnable(plan: PairedPlan, python: str | None) -> PairedPlan:
    """Return the plan with an interpreter that this machine has."""
    runtime, refusals = find_runtime(python or plan.runtime.python, "--python")
    if runtime is None:
        raise Refused(refusals)
    return plan if python is None else plan.model_copy(update={"runtime": runtime})
