"""What serve writes down once an experiment has ended."""

from __future__ import annotations

from datetime import datetime

from roundkit.core.clock import now_utc
from roundkit.models.campaign import Drift
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import AaCheck, TicketRecord
from roundkit.models.run_spec import RunSpec
from roundkit.models.verdict import VerdictRecord
from roundkit.rounds.control import mark_paused
from roundkit.rounds.requests import Bench
from roundkit.rules.drift import aa_check, check_words, same_place
from roundkit.rules.remeasure import broke_words, is_checked_again, is_measured_again, pause_reason
from roundkit.rules.verdict import decide, unmeasured
from roundkit.rules.verdict_words import in_words
from roundkit.store import RoundStore


def record_ticket(bench: Bench, store: RoundStore, ticket: TicketRecord, record: ExperimentRecord) -> str:
    """Record a ticket's experiment with its verdict, or put the ticket back; return a line about it."""
    verdict = decide(record, bench.spec)
    with store.transaction():
        store.experiments.finish(record)
        earlier = store.experiments.records(ticket.ticket)[:-1]
        again = is_measured_again(record, verdict, earlier, bench.spec.gates)
        if again:
            store.tickets.requeue(ticket.key)
            store.events.add("requeued", ticket=ticket.ticket, reason=verdict.reason)
            why = verdict.reason if record.outcome == "complete" else broke_words(record)
            line = f"{ticket.ticket} back in the queue: {why}"
        else:
            # A worker's clock may be ahead by as much as nobody can tell.
            _record_verdict(store, ticket, verdict, max(now_utc(), record.ended_utc))
            line = f"{ticket.ticket} {in_words(verdict, record)}"
        paused = pause_reason(record, again=again)
        if paused is not None:
            mark_paused(store, paused, experiment=record.experiment_id)
            line += f"; the queue is paused: {paused}"
    return line


def record_late(store: RoundStore, record: ExperimentRecord, spec: RunSpec, round_id: str) -> str:
    """Keep the record of an experiment that had been given up; it counts for nothing.

    Args:
        store: The round's.
        record: What came.
        spec: How the round's trials run.
        round_id: The round.

    Returns:
        A line about it, with its digest where it is not kept.
    """
    if not store.experiments.was_begun(record.experiment_id):
        return f"{record.experiment_id} came in late, and was never asked for: it is not kept"
    if (record.round_id, record.run_spec_sha256) != (round_id, spec.digest()):
        return (
            f"{record.experiment_id} came in late, and is of another round or run specification: "
            f"it is not kept (sha256 {record.digest()})"
        )
    with store.transaction():
        kept = store.experiments.keep_late(record)
        if kept:
            store.events.add(
                "late-record",
                experiment=record.experiment_id,
                outcome=record.outcome,
                sha256=record.digest(),
            )
    what = "kept as a duplicate" if kept else "on record already"
    return f"{record.experiment_id} came in late: {what}"


def record_unmeasured(bench: Bench, store: RoundStore, ticket: TicketRecord, reason: str) -> None:
    """Record that an accepted ticket was never measured, and why."""
    with store.transaction():
        _record_verdict(store, ticket, unmeasured(reason, bench.spec), now_utc())


def record_aa(bench: Bench, store: RoundStore, record: ExperimentRecord) -> str:
    """Record an A/A check: pause the queue when it fails, end a pause that waits for it when it passes.

    An experiment that broke by no fault of the incumbent or the device is no check; it is done anew.

    Returns:
        A line about it.
    """
    verdict = decide(record, bench.spec)
    with store.transaction():
        store.experiments.finish(record)
        earlier = store.experiments.records(record.subject)[:-1]
        if is_checked_again(record, earlier, bench.spec.gates):
            store.events.add("aa-broke", experiment=record.experiment_id, reason=record.reason)
            return f"{record.subject} is done anew: {broke_words(record)}"
        resumes = _ends_a_pause(store, record)
        drift = bench.plan.campaign.test_plan.drift
        checks = store.aa_checks.all()
        history = same_place(record, checks, store.experiments.by_id(one.experiment for one in checks))
        check = aa_check(record, verdict, history, drift, resumes=resumes)
        store.aa_checks.add(check, store.tickets.count(state="measured"))
        store.events.add("aa", experiment=check.experiment, z=check.z, cusum=check.cusum, passed=check.passed)
        if not check.passed:
            reason = f"A/A failed: {_why_failed(record, check, drift)}"
            mark_paused(store, reason, experiment=record.experiment_id)
            return f"{record.subject} failed, the queue is paused: {reason}"
        # Only a pause that its owner asked to end ends; one that came meanwhile stays.
        if resumes:
            store.control.clear("resume-needs-aa")
            store.control.clear("paused")
            store.events.add("resumed", experiment=check.experiment)
    return f"{record.subject} passed: {check_words(check, drift)}"


def _why_failed(record: ExperimentRecord, check: AaCheck, drift: Drift) -> str:
    if check.z is None:
        return broke_words(record) if record.outcome != "complete" else str(check.reason)
    return f"{check.reason}, {check_words(check, drift)}"


def _ends_a_pause(store: RoundStore, record: ExperimentRecord) -> bool:
    """Say whether a check was begun after the owner asked to resume; an older one says nothing about now."""
    asked = store.control.get("resume-needs-aa")
    return asked is not None and record.started_utc >= datetime.fromisoformat(asked)


def _record_verdict(
    store: RoundStore, ticket: TicketRecord, verdict: VerdictRecord, measured_utc: datetime
) -> None:
    store.tickets.set_verdict(ticket.key, verdict, measured_utc)
    store.events.add(
        "verdict", ticket=ticket.ticket, verdict=verdict.verdict, reason=verdict.reason, gain=verdict.gain
    )
