"""Composition: one lane a step on the head so far, each step measured; then the rerun."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from roundkit.core.progress import Task
from roundkit.models.ledger import CompositionStep, InteractionRatio, RerunRecord, TicketRecord
from roundkit.models.verdict import VerdictRecord
from roundkit.rounds.candidate import CannotLay, Laid, lay_candidate
from roundkit.rounds.measuring import Closer
from roundkit.rules.ratio import BY_CONSTRUCTION, UNMEASURABLE, interaction_ratio
from roundkit.rules.verdict import unmeasured


def compose(
    closer: Closer, order: Sequence[TicketRecord], whole: Task | None = None
) -> tuple[CompositionStep, ...]:
    """Lay the selected tickets on one another in order; a step that does not pass is skipped.

    Args:
        closer: What every step works with.
        order: The selected tickets, in the order in which they are laid.
        whole: Counts every step that is done.
    """
    plan = closer.bench.plan
    head = Laid(plan.incumbent, plan.incumbent_tree)
    steps: list[CompositionStep] = []
    for number, ticket in enumerate(order, start=1):
        name = f"step-{number}"
        done = closer.store.steps.get(name)
        step = (
            CompositionStep.from_bytes(done, place=name) if done else _take_step(closer, number, ticket, head)
        )
        if done is None:
            with closer.store.transaction():
                closer.store.steps.put(name, step.to_bytes())
        steps.append(step)
        if whole is not None:
            whole.advance()
        if step.kept and step.candidate is not None and step.tree is not None:
            head = Laid(step.candidate, step.tree)
    return tuple(steps)


def head_after(closer: Closer, steps: Sequence[CompositionStep]) -> tuple[Laid, tuple[str, ...]]:
    """Return the final head and the lanes that it holds."""
    plan = closer.bench.plan
    head, lanes = Laid(plan.incumbent, plan.incumbent_tree), []
    for step in steps:
        if step.kept and step.candidate is not None and step.tree is not None:
            head = Laid(step.candidate, step.tree)
            lanes.append(step.lane)
    return head, tuple(lanes)


def rerun(closer: Closer, steps: Sequence[CompositionStep]) -> tuple[RerunRecord, ...]:
    """Measure the final head once more against I0; when it fails, the best single lane, once."""
    head, lanes = head_after(closer, steps)
    if not lanes:
        return ()
    first = _rerun_once(closer, steps, "rerun", head, lanes)
    if first.verdict.verdict == "pass" or closer.bench.plan.composition.fallback == "keep-incumbent":
        return (first,)
    best = steps[0]
    if lanes == (best.lane,) or best.candidate is None or best.tree is None:
        return (first,)
    return (first, _rerun_once(closer, steps, "fallback", Laid(best.candidate, best.tree), (best.lane,)))


def _take_step(closer: Closer, number: int, ticket: TicketRecord, head: Laid) -> CompositionStep:
    plan = closer.bench.plan
    if number == 1:
        if plan.composition.fresh_standalone:
            _measure_alone(closer, ticket)
        return _first_step(ticket, head)
    try:
        laid = lay_candidate(closer.bench.folder, plan, ticket, head.commit)
    except CannotLay:
        verdict = unmeasured("candidate-does-not-fit", closer.bench.spec, verdict_name="fail")
        return _step(number, ticket, head, None, None, verdict, UNMEASURABLE)
    measured = closer.measure("compose", f"step-{number}-{ticket.lane}", ticket.lane, head, laid, like=ticket)
    standalone, fresh = ticket.verdict, False
    if plan.composition.fresh_standalone:
        standalone, fresh = _measure_alone(closer, ticket), True
    direction = plan.campaign.metric.direction
    ratio = interaction_ratio(measured.verdict, standalone, direction, fresh=fresh)
    return _step(number, ticket, head, laid, measured.experiment, measured.verdict, ratio)


def _measure_alone(closer: Closer, ticket: TicketRecord) -> VerdictRecord:
    """Measure a lane alone against I0 once more: its gain without the luck that selected it."""
    plan = closer.bench.plan
    alone = lay_candidate(closer.bench.folder, plan, ticket, plan.incumbent)
    baseline = Laid(plan.incumbent, plan.incumbent_tree)
    subject = f"alone-{ticket.lane}"
    return closer.measure("standalone", subject, ticket.lane, baseline, alone, like=ticket).verdict


def _first_step(ticket: TicketRecord, head: Laid) -> CompositionStep:
    """Step 1 reuses the lane's own measurement against I0."""
    if ticket.candidate_commit is None or ticket.candidate_tree is None or ticket.verdict is None:
        raise ValueError(f"ticket {ticket.ticket} was selected without a measurement")
    laid = Laid(ticket.candidate_commit, ticket.candidate_tree)
    return _step(1, ticket, head, laid, ticket.experiments[-1], ticket.verdict, BY_CONSTRUCTION)


def _step(
    number: int,
    ticket: TicketRecord,
    head: Laid,
    laid: Laid | None,
    experiment: str | None,
    verdict: VerdictRecord,
    ratio: InteractionRatio,
) -> CompositionStep:
    return CompositionStep(
        step=number,
        lane=ticket.lane,
        ticket=ticket.ticket,
        head_before=head.commit,
        tree=laid.tree if laid else None,
        candidate=laid.commit if laid else None,
        experiment=experiment,
        reused=number == 1,
        verdict=verdict,
        kept=verdict.verdict == "pass",
        ratio=ratio,
    )


def _rerun_once(
    closer: Closer,
    steps: Sequence[CompositionStep],
    kind: Literal["rerun", "fallback"],
    laid: Laid,
    lanes: tuple[str, ...],
) -> RerunRecord:
    done = closer.store.steps.get(kind)
    if done is not None:
        return RerunRecord.from_bytes(done, place=kind)
    plan = closer.bench.plan
    baseline = Laid(plan.incumbent, plan.incumbent_tree)
    measured = closer.measure(kind, kind, None, baseline, laid, like=_ticket_of(closer, steps, lanes[0]))
    record = RerunRecord(
        kind=kind,
        commit=laid.commit,
        tree=laid.tree,
        lanes=lanes,
        experiment=measured.experiment,
        verdict=measured.verdict,
    )
    with closer.store.transaction():
        closer.store.steps.put(kind, record.to_bytes())
    return record


def _ticket_of(closer: Closer, steps: Sequence[CompositionStep], lane: str) -> TicketRecord:
    """Return the ticket that a lane put into the composition."""
    name = next(step.ticket for step in steps if step.lane == lane)
    return next(ticket for ticket in closer.store.tickets.all() if ticket.ticket == name)
