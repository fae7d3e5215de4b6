"""What serve writes down once an experiment has ended."""

from __future__ import annotations

from roundkit.core.clock import now_utc
from roundkit.models.ledger import TicketRecord
from roundkit.models.measurement import ExperimentRecord, VerdictRecord
from roundkit.rounds.requests import Bench
from roundkit.rules.drift import aa_check
from roundkit.rules.remeasure import is_measured_again
from roundkit.rules.verdict import decide, unmeasured
from roundkit.store import RoundStore


def record_ticket(bench: Bench, store: RoundStore, ticket: TicketRecord, record: ExperimentRecord) -> str:
    """Record a ticket's experiment with its verdict, or put the ticket back; return a line about it."""
    verdict = decide(record, bench.spec)
    with store.transaction():
        store.experiments.finish(record)
        earlier = store.experiments.records(ticket.ticket)[:-1]
        if record.outcome == "baseline-broke":
            store.control.put("paused", f"the baseline broke: {record.reason}")
            store.events.add("paused", reason=f"baseline: {record.reason}")
        if is_measured_again(record, verdict, earlier, bench.spec.gates.remeasure_limit):
            store.tickets.requeue(ticket.key)
            store.events.add("requeued", ticket=ticket.ticket, reason=verdict.reason)
            return f"{ticket.ticket} back in the queue: {verdict.reason}"
        _record_verdict(store, ticket, verdict)
    return f"{ticket.ticket} {verdict.verdict}: {verdict.sentence}"


def record_unmeasured(bench: Bench, store: RoundStore, ticket: TicketRecord, reason: str) -> None:
    """Record that a queued ticket was never measured, and why."""
    with store.transaction():
        _record_verdict(store, ticket, unmeasured(reason, bench.spec))


def record_aa(bench: Bench, store: RoundStore, record: ExperimentRecord) -> str:
    """Record an A/A check; pause the queue when it fails. Return a line about it."""
    verdict = decide(record, bench.spec)
    with store.transaction():
        store.experiments.finish(record)
        check = aa_check(record, verdict, store.aa_checks.all(), bench.plan.campaign.test_plan.drift)
        store.aa_checks.add(check, store.tickets.count(state="measured"))
        store.events.add("aa", experiment=check.experiment, z=check.z, cusum=check.cusum, passed=check.passed)
        store.control.clear("resume-needs-aa")
        if check.passed:
            store.control.clear("paused")
            return f"{record.subject} passed: A/A z = {check.z}, drift {check.cusum}"
        store.control.put("paused", f"A/A failed: {check.reason}")
    return f"{record.subject} failed, the queue is paused: {check.reason}"


def _record_verdict(store: RoundStore, ticket: TicketRecord, verdict: VerdictRecord) -> None:
    store.tickets.set_verdict(ticket.key, verdict, now_utc())
    store.events.add(
        "verdict", ticket=ticket.ticket, verdict=verdict.verdict, reason=verdict.reason, gain=verdict.gain
    )
