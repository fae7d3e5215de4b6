"""The log of a round: what an event tells of a ticket, an experiment or an attempt is what is on record."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.material import Material
from roundkit.evidence.events import Event
from roundkit.models.attempts import AttemptRecord

_BUILT = frozenset({"build", "smoke", "import-path", "malformed"})
"""Causes of a rejection after intake."""
_WRITTEN_WITHIN = timedelta(minutes=10)
_TIMES = {
    "attempt-reserved": "reserved_utc",
    "attempt-claimed": "claimed_utc",
    "attempt-settled": "ended_utc",
    "attempt-cancelled": "ended_utc",
}


def check_log(material: Material) -> list[Check]:
    """Check every field of the events that stands in a record too."""
    return conclude("log", _problems(material), "events tell what the records hold")


def _problems(material: Material) -> Iterator[Disagreement]:
    for number, event in enumerate(material.evidence.events, 1):
        for name, follows in _wanted(material, event).items():
            stands = event.fields.get(name)
            if stands != follows:
                yield differs(f"events.jsonl: line {number}", f"{name} of {event.kind}", stands, follows)
        yield from _moment_problems(material, number, event)
    yield from _closing_problems(material)


def _moment_problems(material: Material, number: int, event: Event) -> Iterator[Disagreement]:
    """An event is written together with its record, so that neither can be moved past a deadline alone."""
    moment = _moment(material, event)
    if moment is not None and abs(event.time - moment) > _WRITTEN_WITHIN:
        yield differs(f"events.jsonl: line {number}", f"time of {event.kind}", event.time, moment)


def _moment(material: Material, event: Event) -> datetime | None:
    """Return when the record says that it happened, where it says so."""
    match event.kind:
        case "intake" | "verdict":
            ticket = material.ticket(str(event.fields.get("ticket")))
            if ticket is None or event.kind == "intake":
                return None if ticket is None else ticket.intake_utc
            # A worker's clock may be ahead, and a verdict is never older than its experiment.
            ends = {record.ended_utc for record in material.of_subject(ticket.ticket)}
            return None if ticket.measured_utc in ends else ticket.measured_utc
        case "submission-rejected":
            named = event.fields.get("lane"), event.fields.get("entry")
            rejected = material.ledger.rejected_submissions
            return next((one.intake_utc for one in rejected if (one.lane, one.entry) == named), None)
        case "attempt-reserved" | "attempt-claimed" | "attempt-settled" | "attempt-cancelled":
            attempt = _attempt(material, event)
            return None if attempt is None else getattr(attempt, _TIMES[event.kind])
        case _:
            return None


def _wanted(material: Material, event: Event) -> dict[str, object]:
    """Return what an event's fields have to be, as far as records tell."""
    match event.kind:
        case "intake" | "build-rejected" | "verdict":
            return _of_ticket(material, event)
        case "experiment-started" | "experiment-finished" | "aa":
            return _of_experiment(material, event)
        case "late-record":
            late = material.evidence.duplicates.get(str(event.fields.get("sha256")))
            return {} if late is None else {"experiment": late.experiment_id, "outcome": late.outcome}
        case "attempt-reserved" | "attempt-claimed" | "attempt-settled" | "attempt-cancelled":
            return _of_attempt(material, event)
        case _:
            return {}


def _of_ticket(material: Material, event: Event) -> dict[str, object]:
    ticket = material.ticket(str(event.fields.get("ticket")))
    if ticket is None:
        return {}  # the events' own check says so
    if event.kind == "verdict":
        verdict = ticket.verdict
        return {} if verdict is None else {"reason": verdict.reason, "gain": verdict.gain}
    if event.kind == "build-rejected":
        return {"cause": ticket.reject_cause}
    later = ticket.reject_cause in _BUILT and event.fields.get("state") == "queued"
    cause = None if later else ticket.reject_cause
    return {"lane": ticket.lane, "state": "queued" if cause is None else "rejected", "cause": cause}


def _of_experiment(material: Material, event: Event) -> dict[str, object]:
    record = material.experiments.get(str(event.fields.get("experiment")))
    if record is None:
        return {}
    if event.kind == "experiment-started":
        return {"purpose": record.purpose, "subject": record.subject}
    if event.kind == "experiment-finished":
        return {"outcome": record.outcome}
    check = next((one for one in material.ledger.aa_checks if one.experiment == record.experiment_id), None)
    return {} if check is None else {"z": check.z, "cusum": check.cusum, "passed": check.passed}


def _of_attempt(material: Material, event: Event) -> dict[str, object]:
    known = _attempt(material, event)
    if known is None:
        return {"ordinal": f"that of an attempt of lane {event.fields.get('lane')}"}
    return {"run_id": known.binding.run_id}


def _attempt(material: Material, event: Event) -> AttemptRecord | None:
    """Return the attempt that an event is about."""
    named = event.fields.get("lane"), event.fields.get("ordinal")
    attempts = material.ledger.attempts
    return next((one for one in attempts if (one.binding.lane, one.binding.ordinal) == named), None)


def _closing_problems(material: Material) -> Iterator[Disagreement]:
    ledger = material.ledger
    closed = [event for event in material.evidence.events if event.kind == "closed"]
    if not closed:
        yield Disagreement("events.jsonl", "does not say that the round was closed")
    for event in closed:
        told = event.fields.get("head"), event.fields.get("advanced")
        if told != (ledger.head, ledger.advanced):
            yield differs("events.jsonl", "how the round was closed", told, (ledger.head, ledger.advanced))
