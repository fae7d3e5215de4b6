"""Roles: every experiment was made for the one thing that the ledger uses it for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.material import Material
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.measurement import Purpose
from roundkit.rules.device_class import class_of
from roundkit.rules.remeasure import is_measured_again
from roundkit.rules.verdict import decide


@dataclass(frozen=True)
class _Role:
    """One thing that an experiment can be for.

    Attributes:
        where: What the ledger calls it.
        named: The experiments that the ledger names for it.
    """

    where: str
    purpose: Purpose
    subject: str
    lane: str | None
    named: tuple[str, ...]


def check_roles(material: Material) -> list[Check]:
    """Check that nothing measured for one purpose stands as a fresh measurement for another.

    An experiment's coins follow from its subject, so that a record cannot be given another one.
    """
    return conclude("roles", _problems(material), "every experiment was made for what it is used for")


def standalone_subject(lane: str) -> str:
    """Return the subject of a lane's fresh standalone measurement."""
    return f"alone-{lane}"


def _problems(material: Material) -> Iterator[Disagreement]:
    roles = list(_roles(material))
    for role in roles:
        for record in _records(material, role):
            yield from _differences(role, record)
    used = Counter(experiment_id for role in roles for experiment_id in role.named)
    for experiment_id, times in used.items():
        if times > 1:
            yield Disagreement(experiment_id, f"stands for {times} measurements")
    yield from _unnamed_problems(material, roles)
    yield from _first_step_problems(material)
    yield from _class_problems(material)
    yield from _standalone_problems(material)


def _unnamed_problems(material: Material, roles: list[_Role]) -> Iterator[Disagreement]:
    """What was measured to its end decided: a ledger cannot say that it was not measured, or leave it out."""
    unnamed = {role.subject for role in roles if not role.named and role.purpose != "standalone"}
    known = {role.subject for role in roles}
    for subject in sorted({one.subject for one in material.experiments.values() if one.purpose != "aa"}):
        records = material.of_subject(subject)
        if subject in known and subject not in unnamed:
            continue
        verdict = decide(records[-1], material.spec)
        if not is_measured_again(records[-1], verdict, records[:-1], material.spec.gates):
            last = records[-1].experiment_id
            yield Disagreement(last, "was measured to its end, and the ledger does not name it")


def _class_problems(material: Material) -> Iterator[Disagreement]:
    """Where the plan wants one device class for a lane, every step of it was measured on that class."""
    if not material.plan.composition.same_device_class:
        return
    sets, tickets = (
        material.plan.device_sets,
        {step.lane: step.ticket for step in material.ledger.composition},
    )
    wanted: dict[str, str | None] = {}
    for composed, name in tickets.items():
        ticket = material.ticket(name)
        if ticket is not None and ticket.experiments and ticket.experiments[-1] in material.experiments:
            wanted[composed] = class_of(sets, material.experiments[ticket.experiments[-1]])
    named: list[tuple[str | None, str | None]] = [
        (step.experiment, step.lane) for step in material.ledger.composition if not step.reused
    ]
    named += [(rerun.experiment, rerun.lanes[0]) for rerun in material.ledger.rerun if rerun.lanes]
    named += [(record.experiment_id, record.lane) for record in _of_purpose(material, "standalone")]
    for experiment_of, lane in named:
        record = material.experiments.get(experiment_of or "")
        if record is not None and record.lease is not None and lane in wanted:
            found = class_of(sets, record)
            if found != wanted[lane]:
                yield differs(record.experiment_id, "device class", found, wanted[lane])


def _of_purpose(material: Material, purpose: Purpose) -> list[ExperimentRecord]:
    return [record for record in material.experiments.values() if record.purpose == purpose]


def _standalone_problems(material: Material) -> Iterator[Disagreement]:
    if not material.plan.composition.fresh_standalone:
        return
    for step in material.ledger.composition:
        if step.experiment is not None and not material.of_subject(standalone_subject(step.lane)):
            yield Disagreement(f"lane {step.lane}", "was composed and not measured alone once more")


def _roles(material: Material) -> Iterator[_Role]:
    ledger = material.ledger
    for ticket in ledger.tickets:
        yield _Role(ticket.ticket, "ticket", ticket.ticket, ticket.lane, ticket.experiments)
    for step in ledger.composition:
        subject = f"step-{step.step}-{step.lane}"
        if not step.reused:
            yield _Role(
                f"composition step {step.step}", "compose", subject, step.lane, _named(step.experiment)
            )
        if material.plan.composition.fresh_standalone:
            yield _Role(f"lane {step.lane} alone", "standalone", standalone_subject(step.lane), step.lane, ())
    for rerun in ledger.rerun:
        yield _Role(rerun.kind, rerun.kind, rerun.kind, None, _named(rerun.experiment))
    for number, check in enumerate(ledger.aa_checks, start=1):
        yield _Role(f"A/A check {number}", "aa", f"aa-{number}", None, (check.experiment,))


def _named(experiment_id: str | None) -> tuple[str, ...]:
    return (experiment_id,) if experiment_id is not None else ()


def _records(material: Material, role: _Role) -> Iterator[ExperimentRecord]:
    """Yield what the ledger names for a role, and whatever else was made for its subject."""
    for record in material.experiments.values():
        if record.experiment_id in role.named or record.subject == role.subject:
            yield record


def _differences(role: _Role, record: ExperimentRecord) -> Iterator[Disagreement]:
    for what in ("purpose", "subject", "lane"):
        stands, wanted = getattr(record, what), getattr(role, what)
        if stands != wanted:
            yield differs(role.where, f"{what} of {record.experiment_id}", stands, wanted)


def _first_step_problems(material: Material) -> Iterator[Disagreement]:
    """Step 1 alone is no measurement of its own: it is that of its ticket."""
    for step in material.ledger.composition[:1]:
        ticket = material.ticket(step.ticket)
        wanted = ticket.experiments[-1] if ticket is not None and ticket.experiments else None
        if step.experiment != wanted:
            yield differs("composition step 1", "experiment", step.experiment, wanted)
