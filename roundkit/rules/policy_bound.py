"""The measurement-queue bound: a finished round measured again on the virtual clock, with no agent."""

from __future__ import annotations

from dataclasses import dataclass

from roundkit.models.experiment import ExperimentRecord
from roundkit.rules.policy_queue import VirtualQueue, VirtualTicket, drain
from roundkit.rules.policy_run import RoundView


@dataclass(frozen=True)
class QueueBound:
    """How long the measurements of one round take by themselves.

    It says nothing of how agents would adapt, reorder or write other candidates after a verdict: it is a
    bound on the term of measurement, and no third policy.

    Attributes:
        tickets: Candidates that were measured.
        tickets_s: Until the last of them has its verdict, when all are there at the start.
        close_s: What composition and reruns took, one after the other.
    """

    round_id: str
    tickets: int
    tickets_s: float
    close_s: float

    @property
    def total_s(self) -> float:
        """Return both together."""
        return self.tickets_s + self.close_s


def measurement_queue_bound(view: RoundView) -> QueueBound:
    """Replay a closed round's manifests by the times that their measurements took.

    Args:
        view: The round's evidence. Repeated experiments count for their ticket with all the time they took.
    """
    plan = view.plan
    checks = iter([_seconds(record) for record in view.experiments if record.purpose == "aa"])
    first = next(checks, None)
    queue = VirtualQueue(
        lanes=[lane.id for lane in plan.lanes],
        device_sets=len(plan.device_sets),
        aa_interval=plan.aa_interval,
        aa_minutes=None if first is None else lambda: next(checks, first),
    )
    tickets = []
    for ticket in view.ledger.tickets:
        taken = [_seconds(record) for record in view.experiments if record.subject == ticket.ticket]
        if taken:
            tickets.append(VirtualTicket(ticket.lane, ticket.sequence, sum(taken), 0.0))
    close_s = sum(_seconds(r) for r in view.experiments if r.purpose not in {"ticket", "aa"})
    return QueueBound(view.ledger.round_id, len(tickets), drain(tickets, queue), close_s)


def _seconds(record: ExperimentRecord) -> float:
    lease = record.lease
    return (lease.released_utc - lease.acquired_utc).total_seconds() if lease else 0.0
