"""One run of a policy pilot as its rounds' evidence tells it: times, gains, costs, waits. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from roundkit.models.attempts import AttemptRecord
from roundkit.models.base import Provenance
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import RoundLedger, TicketRecord
from roundkit.models.pilot_trial import ArchivedFile
from roundkit.models.policy_plan import PolicyPlan, PolicySlot
from roundkit.models.policy_run import (
    PolicyEnd,
    PolicyLaunch,
    PolicyRound,
    PolicyRunRecord,
    PolicyStart,
    RunEnd,
    StepRatio,
    TicketWait,
)
from roundkit.models.round_plan import RoundPlan
from roundkit.rules.outcome import ending_of
from roundkit.rules.pilot_chain import Link
from roundkit.rules.policy_clock import no_times
from roundkit.rules.policy_stopping import (
    chained_gain,
    charge_of,
    next_step,
    reaches,
    rules_of,
    sum_costs,
)

_SECONDS_AN_HOUR = 3600.0
_GATE = "gate"


@dataclass(frozen=True)
class RoundView:
    """One round's evidence, read.

    Attributes:
        digest: Of the evidence.
        experiments: Every one of it.
    """

    plan: RoundPlan
    ledger: RoundLedger
    experiments: tuple[ExperimentRecord, ...]
    digest: str


def planned_lanes(plan: PolicyPlan, rounds: Iterable[RoundView]) -> frozenset[str]:
    """Return the lanes whose entry is planned after some rounds."""
    planned = {lane.id for lane in plan.round.lanes}
    for view in rounds:
        for lane in view.ledger.lanes:
            (planned.add if lane.entry_status == "planned" else planned.discard)(lane.lane)
    return frozenset(planned)


def step_after(plan: PolicyPlan, slot: PolicySlot, rounds: Sequence[RoundView]) -> tuple[str, ...] | RunEnd:
    """Return the lanes of a run's next round, or why it has ended."""
    tried = [lane.id for view in rounds for lane in view.plan.lanes]
    return next_step(
        rules_of(plan, slot.arm),
        gain=chained_gain(_gains(rounds)),
        charged=sum_costs([charge_of(view.ledger.attempts) for view in rounds]),
        planned=planned_lanes(plan, rounds),
        last=tried[-1] if tried else None,
    )


def run_link(slot: PolicySlot, start: PolicyStart | None, record: PolicyRunRecord | None) -> Link:
    """Return a run's place in the pilot's chain."""
    return Link(
        name=slot.run_id,
        started=start is not None,
        previous=None if start is None else start.previous_sha256,
        record=None if record is None else record.digest(),
    )


def derive_run(
    plan: PolicyPlan,
    slot: PolicySlot,
    end: PolicyEnd,
    launch: PolicyLaunch | None,
    rounds: Sequence[RoundView],
    files: tuple[ArchivedFile, ...] | None,
) -> PolicyRunRecord:
    """Derive a run's record; nothing in it comes from anywhere else.

    Args:
        plan: The frozen plan.
        slot: Which run it is.
        end: How it ended as a process.
        launch: Its first launch; None when it never was.
        rounds: Its rounds with evidence, in order.
        files: What else is in its folder; None for a record of the older format, which binds none.
    """
    completed = end.process == "completed"
    leased = [record for view in rounds for record in view.experiments]
    both = [(view.plan, view.ledger) for view in rounds]
    unclear = no_times(both, launch, leased, end, older=files is None)
    timed = completed and unclear is None
    launched_utc = launch.launched_utc if launch is not None else None
    rows = _rows(launched_utc if unclear is None else None, rounds)
    step = step_after(plan, slot, rounds)
    ended = step if completed and isinstance(step, str) else None
    reached = [row.elapsed_s for row in rows if row.advanced and reaches(row.total_gain, plan.target_gain)]
    target_s = reached[0] if timed and reached else None
    wall_s = _wall_s(launched_utc, rounds) if unclear is None else None
    return PolicyRunRecord(
        format="roundkit-policy-run/1" if files is None else "roundkit-policy-run/2",
        plan_sha256=plan.digest(),
        files=files,
        run_id=slot.run_id,
        order=slot.order,
        arm=slot.arm,
        repetition=slot.repetition,
        process=end.process,
        detail=end.detail or (f"{unclear}, so that it has no time" if completed and unclear else ""),
        end=ended,
        provenances=_provenances(rounds),
        launched_utc=launched_utc,
        rounds=rows,
        target_s=target_s,
        censored=timed and target_s is None,
        wall_s=wall_s if completed else None,
        final_gain=chained_gain(_gains(rounds)) if completed else None,
        charged=sum_costs([row.charged for row in rows]),
        tokens=_counted(rounds, "tokens"),
        micro_usd=_counted(rounds, "micro_usd"),
        device_hours=_device_hours(leased) if unclear is None else None,
        utilization=_utilization(plan, wall_s, leased),
        waits=tuple(_wait(ticket, view, unclear) for view in rounds for ticket in view.ledger.tickets),
        interactions=tuple(_ratios(rounds)),
        lost=tuple(
            f"{view.ledger.round_id}-{lane.lane}"
            for view in rounds
            for lane in view.ledger.lanes
            if lane.outcome == "skipped"
        ),
        rejected=_rejected(rounds),
        experiments=dict(sorted(Counter(record.purpose for record in leased).items())),
    )


def _rows(launched_utc: datetime | None, rounds: Sequence[RoundView]) -> tuple[PolicyRound, ...]:
    rows = []
    for number, view in enumerate(rounds, 1):
        ended = _rerun_end(view)
        rows.append(
            PolicyRound(
                round_id=view.ledger.round_id,
                evidence_sha256=view.digest,
                lanes=tuple(lane.id for lane in view.plan.lanes),
                incumbent=view.plan.incumbent,
                head_tree=view.ledger.head_tree,
                advanced=view.ledger.advanced,
                gain=view.ledger.gain,
                total_gain=chained_gain(_gains(rounds[:number])),
                elapsed_s=(ended - launched_utc).total_seconds() if ended and launched_utc else None,
                charged=charge_of(view.ledger.attempts),
            )
        )
    return tuple(rows)


def _gains(rounds: Iterable[RoundView]) -> list[float]:
    return [view.ledger.gain for view in rounds if view.ledger.gain is not None]


def _rerun_end(view: RoundView) -> datetime | None:
    """Return when the rerun that made the round's incumbent ended."""
    accepted = ending_of(view.ledger.rerun).accepted
    ends = {record.experiment_id: record.ended_utc for record in view.experiments}
    return ends.get(accepted.experiment) if accepted and accepted.experiment else None


def _wall_s(launched_utc: datetime | None, rounds: Sequence[RoundView]) -> float | None:
    if launched_utc is None or not rounds:
        return None
    return (rounds[-1].ledger.closed_utc - launched_utc).total_seconds()


def _provenances(rounds: Iterable[RoundView]) -> tuple[Provenance, ...]:
    attempts = {attempt.provenance for view in rounds for attempt in view.ledger.attempts}
    tickets = {ticket.provenance for view in rounds for ticket in view.ledger.tickets}
    return tuple(sorted(attempts | tickets))


def _counted(rounds: Iterable[RoundView], name: str) -> int | None:
    """Return what all attempts really used of something; None where one of them does not tell."""
    attempts: list[AttemptRecord] = [
        attempt for view in rounds for attempt in view.ledger.attempts if attempt.claimed_utc is not None
    ]
    amounts = [getattr(attempt.actual, name) if attempt.actual else None for attempt in attempts]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known and len(known) == len(amounts) else None


def _device_hours(experiments: Iterable[ExperimentRecord]) -> float:
    return sum(_lease_s(record) * _devices(record) for record in experiments) / _SECONDS_AN_HOUR


def _lease_s(record: ExperimentRecord) -> float:
    lease = record.lease
    return (lease.released_utc - lease.acquired_utc).total_seconds() if lease else 0.0


def _devices(record: ExperimentRecord) -> int:
    return len(record.lease.devices) if record.lease else 0


def _utilization(
    plan: PolicyPlan, wall_s: float | None, experiments: Sequence[ExperimentRecord]
) -> float | None:
    if not wall_s:
        return None
    return sum(map(_lease_s, experiments)) / (wall_s * len(plan.round.device_sets))


def _wait(ticket: TicketRecord, view: RoundView, unclear: str | None) -> TicketWait:
    leases = [
        record.lease.acquired_utc
        for record in view.experiments
        if record.subject == ticket.ticket and record.lease is not None
    ]
    if not leases or unclear is not None:
        reason = unclear or ticket.reject_cause or "no experiment of it held a device"
        return TicketWait(ticket=ticket.ticket, lane=ticket.lane, wait_s=None, reason=reason)
    wait_s = (min(leases) - ticket.intake_utc).total_seconds()
    return TicketWait(ticket=ticket.ticket, lane=ticket.lane, wait_s=wait_s, reason=None)


def _ratios(rounds: Iterable[RoundView]) -> Iterable[StepRatio]:
    for view in rounds:
        for step in view.ledger.composition:
            yield StepRatio(
                round_id=view.ledger.round_id,
                lane=step.lane,
                step=step.step,
                value=step.ratio.value,
                basis=step.ratio.basis,
            )


def _rejected(rounds: Iterable[RoundView]) -> dict[str, int]:
    causes: Counter[str] = Counter()
    for view in rounds:
        causes.update(ticket.reject_cause for ticket in view.ledger.tickets if ticket.reject_cause)
        causes.update(rejected.cause for rejected in view.ledger.rejected_submissions)
        causes[_GATE] += sum(
            ticket.verdict is not None and ticket.verdict.verdict != "pass" for ticket in view.ledger.tickets
        )
    return {cause: count for cause, count in sorted(causes.items()) if count}
