"""Every verdict, recomputed from raw samples under the plan's gates."""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.material import Material
from roundkit.core.text import counted
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import TicketRecord
from roundkit.models.verdict import VerdictRecord
from roundkit.rules.disagreement import compare_verdicts
from roundkit.rules.remeasure import is_measured_again
from roundkit.rules.verdict import decide, unmeasured


def check_verdicts(material: Material) -> list[Check]:
    """Check the verdict of every ticket, composition step and rerun against its samples."""
    tickets = [ticket for ticket in material.ledger.tickets if ticket.verdict is not None]
    close = len(material.ledger.composition) + len(material.ledger.rerun)
    return [
        *conclude(
            "verdicts",
            _ticket_problems(material, tickets),
            f"{counted(len(tickets), 'ticket')}, from raw samples",
        ),
        *conclude("close verdicts", _close_problems(material), f"{close} steps and reruns, from raw samples"),
        *conclude(
            "repetitions", _repetition_problems(material), "measured again only where the plan says so"
        ),
    ]


def _ticket_problems(material: Material, tickets: list[TicketRecord]) -> Iterator[Disagreement]:
    for ticket in tickets:
        assert ticket.verdict is not None
        yield from _claimed_experiments(material, ticket)
        records = material.of_subject(ticket.ticket)
        if not records:
            yield from _without_experiment(material, ticket.ticket, ticket.verdict)
            yield from _never_measured(material, ticket)
            continue
        last = records[-1]
        yield from _sides(ticket.ticket, last, material.plan.incumbent, ticket.candidate_commit)
        if last.candidate.tree != ticket.candidate_tree or last.lane != ticket.lane:
            yield Disagreement(ticket.ticket, f"{last.experiment_id} measured another tree or lane")
        if ticket.measured_utc is None or ticket.measured_utc < last.ended_utc:
            yield Disagreement(ticket.ticket, "its verdict is older than its experiment")
        if ticket.verdict.reason == "deadline" and _is_unfinished(material, records):
            yield from _never_measured(material, ticket)
            continue
        yield from compare_verdicts(ticket.ticket, ticket.verdict, decide(last, material.spec))


def _never_measured(material: Material, ticket: TicketRecord) -> Iterator[Disagreement]:
    """Nothing but the round's deadline leaves an accepted ticket without a measurement."""
    if ticket.verdict != unmeasured("deadline", material.spec):
        yield Disagreement(ticket.ticket, "has a verdict that no experiment gave")
    elif ticket.measured_utc is None or ticket.measured_utc < material.plan.deadline_utc:
        yield Disagreement(ticket.ticket, "was called too late before the round's deadline")


def _claimed_experiments(material: Material, ticket: TicketRecord) -> Iterator[Disagreement]:
    interrupted = {
        str(event.fields.get("experiment"))
        for event in material.evidence.events
        if event.kind == "experiment-interrupted"
    }
    recorded = {record.experiment_id for record in material.of_subject(ticket.ticket)}
    for experiment_id in ticket.experiments:
        if experiment_id not in recorded and experiment_id not in interrupted:
            yield Disagreement(
                ticket.ticket, f"experiment {experiment_id} has no record and was not interrupted"
            )
    for experiment_id in sorted(recorded - set(ticket.experiments)):
        yield Disagreement(ticket.ticket, f"experiment {experiment_id} is not named by the ticket")


def _without_experiment(material: Material, where: str, stands: VerdictRecord) -> Iterator[Disagreement]:
    """A verdict without samples may only say so; it can be no result for a candidate."""
    yield from compare_verdicts(
        where, stands, unmeasured(stands.reason, material.spec, verdict_name=stands.verdict)
    )
    if stands.verdict == "pass":
        yield Disagreement(where, "passed without an experiment")


def _close_problems(material: Material) -> Iterator[Disagreement]:
    plan = material.plan
    for step in material.ledger.composition:
        where = f"composition step {step.step}"
        if step.experiment is None:
            yield from _without_experiment(material, where, step.verdict)
            continue
        yield from _measured(material, where, step.experiment, step.head_before, step.candidate, step.verdict)
    for rerun in material.ledger.rerun:
        if rerun.experiment is None:
            yield from _without_experiment(material, rerun.kind, rerun.verdict)
            continue
        yield from _measured(
            material, rerun.kind, rerun.experiment, plan.incumbent, rerun.commit, rerun.verdict
        )


def _measured(
    material: Material,
    where: str,
    experiment_id: str,
    baseline: str,
    candidate: str | None,
    stands: VerdictRecord,
) -> Iterator[Disagreement]:
    record = material.experiments.get(experiment_id)
    if record is None:
        yield Disagreement(where, f"experiment {experiment_id} is not in the evidence")
        return
    yield from _sides(where, record, baseline, candidate)
    yield from compare_verdicts(where, stands, decide(record, material.spec))
    if material.of_subject(record.subject)[-1] is not record:
        yield Disagreement(where, f"{experiment_id} is not the last experiment of {record.subject}")


def _sides(
    where: str, record: ExperimentRecord, baseline: str, candidate: str | None
) -> Iterator[Disagreement]:
    for what, side, wanted in (
        ("baseline", record.baseline, baseline),
        ("candidate", record.candidate, candidate),
    ):
        if side.commit != wanted:
            yield differs(where, f"{what} of {record.experiment_id}", side.commit, wanted)


def _is_unfinished(material: Material, records: list[ExperimentRecord]) -> bool:
    return is_measured_again(
        records[-1], decide(records[-1], material.spec), records[:-1], material.spec.gates
    )


def _repetition_problems(material: Material) -> Iterator[Disagreement]:
    for subject in sorted({record.subject for record in material.experiments.values()}):
        records = material.of_subject(subject)
        for position, record in enumerate(records[:-1], 1):
            if not _is_unfinished(material, records[:position]):
                yield Disagreement(record.experiment_id, "had decided, and yet was measured again")
