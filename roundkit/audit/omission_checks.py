"""Omission: every number in a row, every start with its end, a check of the machine wherever one was due.

Whoever seals evidence can invent all of it; what is held here is that nothing was left out of it without
rewriting everything that names it.
"""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.audit.event_checks import repeated_event_problems
from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.material import Material
from roundkit.evidence.events import Event
from roundkit.models.ledger import TicketRecord

_ENDED_WITHOUT_RECORD = frozenset({"experiment-interrupted", "experiment-cancelled"})


def check_omissions(material: Material) -> list[Check]:
    """Check that tickets, experiments, A/A checks and the log of events leave nothing out."""
    events = len(material.evidence.events)
    return [
        *conclude("sequence", _number_problems(material), "tickets and experiments have no gap"),
        *conclude("events", _event_problems(material), f"{events} events, each about what is on record"),
        *conclude("A/A interval", _interval_problems(material), "the machine was checked when it was due"),
    ]


def _number_problems(material: Material) -> Iterator[Disagreement]:
    sequences = sorted(ticket.sequence for ticket in material.ledger.tickets)
    if sequences != list(range(1, len(sequences) + 1)):
        yield differs("round-ledger.json", "ticket sequences", sequences, f"1 to {len(sequences)}")
    lost = _named(material.evidence.events, _ENDED_WITHOUT_RECORD)
    for subject in sorted({record.subject for record in material.experiments.values()}):
        made = {record.attempt for record in material.of_subject(subject)}
        for attempt in range(1, max(made)):
            if attempt not in made and f"{subject}.{attempt}" not in lost:
                yield Disagreement(subject, f"its experiment {attempt} is missing, and was not interrupted")


def _event_problems(material: Material) -> Iterator[Disagreement]:
    events = material.evidence.events
    started = _named(events, {"experiment-started"})
    lost = _named(events, _ENDED_WITHOUT_RECORD)
    for experiment_id in sorted(started - material.experiments.keys() - lost):
        yield Disagreement("events.jsonl", f"{experiment_id} was started and has neither record nor end")
    for experiment_id in sorted(material.experiments.keys() - started):
        yield Disagreement("events.jsonl", f"{experiment_id} has a record and was never started")
    tickets = {ticket.ticket for ticket in material.ledger.tickets}
    taken_in = _named(events, {"intake"}, "ticket")
    for ticket in sorted(tickets ^ taken_in):
        yield Disagreement("events.jsonl", f"ticket {ticket} was not taken in, or is not in the ledger")
    decided = {(e.fields.get("ticket"), e.fields.get("verdict")) for e in events if e.kind == "verdict"}
    stands = {(t.ticket, t.verdict.verdict) for t in material.ledger.tickets if t.verdict is not None}
    for ticket_name, verdict in sorted(map(_texts, decided ^ stands)):
        yield Disagreement(
            "events.jsonl", f"verdict {verdict} of {ticket_name}: only in the log or the ledger"
        )
    noted = _named(events, {"late-record"}, "sha256")
    for digest in sorted(noted ^ material.evidence.duplicates.keys()):
        yield Disagreement("events.jsonl", f"the late record {digest} is in the log or in the folder alone")
    for record in material.evidence.duplicates.values():
        if record.experiment_id not in started:
            yield Disagreement(record.experiment_id, "has a late record and was never started")
    yield from _resume_problems(material)
    yield from repeated_event_problems(material)
    yield from _untold_problems(material)


def _untold_problems(material: Material) -> Iterator[Disagreement]:
    """Whatever a record says was done has its event, and no such event is about anything else."""
    events = material.evidence.events
    for kind, wanted in _follows(material).items():
        told = {_named_by(event) for event in events if event.kind == kind}
        for name in sorted(wanted - told):
            yield Disagreement("events.jsonl", f"has no {kind} of {name}, which the records show")
        for name in sorted(told - wanted):
            yield Disagreement("events.jsonl", f"has an {kind} of {name}, which no record shows")


def _follows(material: Material) -> dict[str, set[str]]:
    """Return what each kind of event has to be about, by the records."""
    ledger, records = material.ledger, material.experiments.values()
    checks = {check.experiment for check in ledger.aa_checks}
    rejected = {ticket.ticket for ticket in ledger.tickets if ticket.reject_cause is not None}
    queued = {
        str(event.fields.get("ticket"))
        for event in material.evidence.events
        if event.kind == "intake" and event.fields.get("state") == "queued"
    }
    attempts = [(f"{one.binding.lane} {one.binding.ordinal}", one) for one in ledger.attempts]
    return {
        "aa": checks,
        "aa-broke": {one.experiment_id for one in records if one.purpose == "aa"} - checks,
        "experiment-finished": {one.experiment_id for one in records if one.purpose not in {"aa", "ticket"}},
        "build-rejected": rejected & queued,
        "attempt-reserved": {name for name, _ in attempts},
        "attempt-claimed": {name for name, one in attempts if one.claimed_utc is not None},
        "attempt-settled": {name for name, one in attempts if one.phase == "settled"},
        "attempt-cancelled": {name for name, one in attempts if one.phase == "cancelled"},
    }


def _named_by(event: Event) -> str:
    """Return what an event is about, as :func:`_follows` names it."""
    fields = event.fields
    if event.kind.startswith("attempt-"):
        return f"{fields.get('lane')} {fields.get('ordinal')}"
    return str(fields.get("ticket" if event.kind == "build-rejected" else "experiment"))


def _resume_problems(material: Material) -> Iterator[Disagreement]:
    """A check that starts the drift statistic anew was asked for by somebody before it began."""
    asked = [event.time for event in material.evidence.events if event.kind == "resume-requested"]
    for check in material.ledger.aa_checks:
        record = material.experiments.get(check.experiment)
        if check.resumes and record is not None and not any(time <= record.started_utc for time in asked):
            yield Disagreement(check.experiment, "is said to end a pause, and nobody asked to resume")


def _interval_problems(material: Material) -> Iterator[Disagreement]:
    plan = material.plan
    checks = sorted(
        (record for record in material.experiments.values() if record.purpose == "aa"),
        key=lambda record: record.started_utc,
    )
    measured = [record for record in material.experiments.values() if record.purpose == "ticket"]
    if not checks:
        if measured:
            yield Disagreement("round-ledger.json", "tickets were measured and the machine was never checked")
        return
    if measured and min(record.started_utc for record in measured) < checks[0].ended_utc:
        yield Disagreement(checks[0].experiment_id, "is the first A/A check, and not the first measurement")
    # One ticket may be under way on each device set when a check becomes due.
    most = plan.aa_interval + len(plan.device_sets)
    ends = [record.ended_utc for record in checks]
    starts = [*(record.started_utc for record in checks[1:]), None]
    times = [each.measured_utc for each in material.ledger.tickets if each.measured_utc and _ran(each)]
    for end, start in zip(ends, starts, strict=True):
        between = sum(end <= time and (start is None or time < start) for time in times)
        if between > most:
            yield Disagreement(
                "round-ledger.json",
                f"{between} tickets were measured without an A/A check, {plan.aa_interval} are planned",
            )


def _ran(ticket: TicketRecord) -> bool:
    """Say whether a ticket's verdict came from a device: the round's deadline leaves some without one."""
    return ticket.verdict is not None and ticket.verdict.reason != "deadline"


def _named(events: tuple[Event, ...], kinds: frozenset[str] | set[str], key: str = "experiment") -> set[str]:
    return {str(event.fields.get(key)) for event in events if event.kind in kinds}


def _texts(row: tuple[object, object]) -> tuple[str, str]:
    return str(row[0]), str(row[1])
