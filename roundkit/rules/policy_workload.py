"""What a finished pilot's rounds say of A, s and M, from which its two bounds follow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import fmean, median

from roundkit.models.attempts import AttemptRecord
from roundkit.models.policy_plan import PolicyPlan
from roundkit.rules.policy_cost import Workload
from roundkit.rules.policy_run import RoundView


def measured_workload(plan: PolicyPlan, rounds: Iterable[RoundView]) -> Workload | None:
    """Return the workload of a pilot's rounds in seconds; None where no agent ran or nothing was measured.

    A is the median time of an agent's run without its waiting, taken as the time in which one of its
    submissions had no verdict yet; s is the mean number of measured candidates an attempt; M is the median
    time that one of them held a device set.

    Args:
        plan: The frozen plan.
        rounds: All rounds of all runs.
    """
    agents: list[float] = []
    measured: list[float] = []
    for view in rounds:
        agents += [_work_s(attempt, view) for attempt in view.ledger.attempts if attempt.run is not None]
        measured += [
            (record.lease.released_utc - record.lease.acquired_utc).total_seconds()
            for record in view.experiments
            if record.purpose == "ticket" and record.lease is not None
        ]
    if not agents or not measured:
        return None
    return Workload(
        lanes=plan.lanes_per_round,
        agent=median(agents),
        submissions=len(measured) / len(agents),
        measurement=median(measured),
        device_sets=len(plan.round.device_sets),
    )


def mean_wait_s(waits: Sequence[float | None]) -> float | None:
    """Return the mean of the waits that are known; None where none is."""
    known = [wait for wait in waits if wait is not None]
    return fmean(known) if known else None


def _work_s(attempt: AttemptRecord, view: RoundView) -> float:
    run = attempt.run
    if run is None:
        return 0.0
    waiting = sorted(
        (max(ticket.intake_utc, run.started_utc), min(ticket.measured_utc, run.ended_utc))
        for ticket in view.ledger.tickets
        if ticket.lane == attempt.binding.lane and ticket.measured_utc is not None
    )
    waited, seen = 0.0, run.started_utc
    for begin, end in waiting:
        waited += max(0.0, _seconds(max(begin, seen), end))
        seen = max(seen, end)
    return _seconds(run.started_utc, run.ended_utc) - waited


def _seconds(begin: datetime, end: datetime) -> float:
    return (end - begin).total_seconds()
