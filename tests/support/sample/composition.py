"""The close of a sample round: its lanes laid on one another, and the result measured once more."""

from __future__ import annotations

from typing import Literal

from support.sample.bench import SampleBench, measure_when_free
from support.sample.lanes import Lane
from support.sample.plan import invented_commit
from support.sample.tickets import submission_of

from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import CompositionStep, InteractionRatio, RerunRecord, TicketRecord
from roundkit.models.verdict import VerdictRecord
from roundkit.rules.ratio import BY_CONSTRUCTION, interaction_ratio
from roundkit.rules.selection import composition_order, select_tickets
from roundkit.rules.verdict import decide


def compose(
    bench: SampleBench, lanes: tuple[Lane, ...], tickets: list[TicketRecord]
) -> tuple[list[CompositionStep], list[RerunRecord]]:
    """Lay what was selected on one another, and measure what was kept once more."""
    script = {lane.id: lane for lane in lanes}
    steps: list[CompositionStep] = []
    kept: list[str] = []
    head, left = bench.plan.incumbent, 1.0
    for ticket in composition_order(select_tickets(tickets, list(script))):
        lane = script[ticket.lane]
        alone = submission_of(ticket, lane).gain
        gain = -0.01 if lane.overlaps & set(kept) else alone
        if steps:
            steps.append(_later_step(bench, ticket, len(steps) + 1, head, gain, alone))
        else:
            steps.append(_first_step(bench, ticket, alone))
        if steps[-1].kept:
            head, left = str(steps[-1].candidate), left * (1 - gain)
            kept.append(ticket.lane)
    return steps, _reruns(bench, steps, head, tuple(kept), 1 - left) if kept else []


def _first_step(bench: SampleBench, ticket: TicketRecord, gain: float) -> CompositionStep:
    """Take the first ticket as it was measured."""
    assert ticket.verdict is not None
    if bench.plan.composition.fresh_standalone:
        _measure_alone(bench, ticket, gain)
    commit = str(ticket.candidate_commit)
    return _step(
        bench,
        ticket,
        1,
        bench.plan.incumbent,
        commit,
        ticket.experiments[-1],
        ticket.verdict,
        BY_CONSTRUCTION,
    )


def _later_step(
    bench: SampleBench, ticket: TicketRecord, number: int, head: str, gain: float, gain_alone: float
) -> CompositionStep:
    """Measure a ticket on what is kept so far, and hold it against what it gave alone."""
    commit = invented_commit("step", head, ticket.ticket)
    subject = f"step-{number}-{ticket.lane}"
    record = measure_when_free(bench, "compose", subject, ticket.lane, head, commit, gain)
    verdict, alone = decide(record, bench.spec), ticket.verdict
    fresh = bench.plan.composition.fresh_standalone
    if fresh:
        alone = decide(_measure_alone(bench, ticket, gain_alone), bench.spec)
    assert alone is not None
    ratio = interaction_ratio(verdict, alone, bench.plan.campaign.metric.direction, fresh=fresh)
    return _step(bench, ticket, number, head, commit, record.experiment_id, verdict, ratio)


def _measure_alone(bench: SampleBench, ticket: TicketRecord, gain: float) -> ExperimentRecord:
    return measure_when_free(
        bench, "standalone", f"alone-{ticket.lane}", ticket.lane, bench.plan.incumbent,
        str(ticket.candidate_commit), gain,
    )  # fmt: skip


def _step(
    bench: SampleBench,
    ticket: TicketRecord,
    number: int,
    head: str,
    commit: str,
    experiment: str,
    verdict: VerdictRecord,
    ratio: InteractionRatio,
) -> CompositionStep:
    return CompositionStep(
        step=number, lane=ticket.lane, ticket=ticket.ticket, head_before=head, candidate=commit,
        tree=invented_commit("tree", commit), experiment=experiment, reused=number == 1, verdict=verdict,
        kept=verdict.verdict == "pass", ratio=ratio,
    )  # fmt: skip


def _reruns(
    bench: SampleBench, steps: list[CompositionStep], head: str, kept: tuple[str, ...], gain: float
) -> list[RerunRecord]:
    """Measure the kept lanes together, and the best one alone where that shows no gain."""
    found = gain if bench.rerun_gain is None else bench.rerun_gain
    reruns = [_rerun(bench, "rerun", head, kept, found)]
    if reruns[0].verdict.verdict != "pass" and len(kept) > 1:
        reruns.append(_rerun(bench, "fallback", str(steps[0].candidate), (steps[0].lane,), 0.1))
    return reruns


def _rerun(
    bench: SampleBench, kind: Literal["rerun", "fallback"], commit: str, lanes: tuple[str, ...], gain: float
) -> RerunRecord:
    record = measure_when_free(bench, kind, kind, None, bench.plan.incumbent, commit, gain)
    return RerunRecord(
        kind=kind, commit=commit, tree=invented_commit("tree", commit), lanes=lanes,
        experiment=record.experiment_id, verdict=decide(record, bench.spec),
    )  # fmt: skip
