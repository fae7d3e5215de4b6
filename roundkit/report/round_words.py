"""A round in words: what was decided, why, and how it was measured."""

from __future__ import annotations

from roundkit.audit import AuditReport
from roundkit.core.text import counted
from roundkit.models.base import Provenance
from roundkit.models.campaign import Direction
from roundkit.models.instruments import INSTRUCTIONS_SAY_NOTHING, Instrument
from roundkit.models.ledger import CompositionStep, LaneRecord, TicketRecord
from roundkit.models.round_plan import Gates, RoundPlan
from roundkit.models.run_spec import RunSpec
from roundkit.report.markup import interval, joined, number, percent
from roundkit.report.open_words import open_decision, open_why
from roundkit.rounds.snapshot import OpenRound, RoundSource
from roundkit.rules.outcome import OpenLane, ending_of

MOST_EXPERIMENTS = 8
"""Experiments whose raw samples a report draws."""

FORGEABLE = (
    "Reported, forgeable: the candidate runs in the process that reports the result. Only gross disagreement "
    "with the coordinator's clock could be caught."
)
FORGEABLE_COUNT = (
    "Counted by valgrind, forgeable: its counters lie in the memory of the process that runs the candidate. "
    "A changed log or count file is found; machine code that changes the counters, or asks valgrind to run "
    "code uncounted, is not."
)
INSTRUCTIONS = (
    f"Figures are instructions: {INSTRUCTIONS_SAY_NOTHING}. They are those of the whole process from its "
    "start, interpreter and imports included, and of its children."
)
_INSTRUMENTS: dict[Instrument, str] = {
    "reported": "the benchmark's own figure",
    "wall": "wall clock of the coordinator",
    "cpu": "CPU time counted by the coordinator",
    "instructions": f"instructions executed; {INSTRUCTIONS_SAY_NOTHING}",
    "peak-memory": "peak memory of the whole run, counted by the kernel (cgroup)",
}

_GAINS: dict[Direction, str] = {
    "lower": "1 − candidate / baseline",
    "higher": "1 − baseline / candidate: a gain of 20 % is 25 % more",
}


def kept_lanes(source: RoundSource) -> tuple[str, ...]:
    """Return the lanes that are in the new incumbent."""
    return ending_of(source.ledger.rerun).lanes


def provenances(source: RoundSource) -> list[Provenance]:
    """Return what produced the tickets, each once."""
    return sorted({ticket.provenance for ticket in source.ledger.tickets})


def decision(source: RoundSource) -> str:
    """Return what the round decided, in one line."""
    if isinstance(source, OpenRound):
        return open_decision(source)
    ledger, metric = source.ledger, source.plan.campaign.metric
    if ledger.gain is None:
        return "The incumbent stays"
    return f"New incumbent: {percent(change(ledger.gain, metric.direction))} {metric.direction} {metric.name}"


def change(gain: float, direction: Direction) -> float:
    """Return by how much the metric itself went the better way, as a fraction of what it was before.

    Records hold gains as ``1 - exp(-delta)``. Where less is better, that is the change; where more is, the
    metric grew by ``exp(delta) - 1``: a gain of 20 % is 25 % more.
    """
    return gain if direction == "lower" else gain / (1.0 - gain)


def why(source: RoundSource) -> str:
    """Return why the round decided so."""
    if isinstance(source, OpenRound):
        return open_why(source)
    ledger = source.ledger
    if not ledger.composition:
        submitted = counted(len(ledger.tickets), "ticket")
        return f"None of {submitted} showed a gain that the plan's gates accept, so nothing was composed."
    accepted = ending_of(ledger.rerun).accepted
    if accepted is None:
        return f"{rerun_sentence(source)} A gain that a fresh measurement does not confirm is not kept."
    lost = [step.lane for step in ledger.composition if step.lane not in accepted.lanes]
    dropped = (
        f" {joined(lost)} passed alone and {'is' if len(lost) == 1 else 'are'} not in it." if lost else ""
    )
    return f"It holds {_lanes(accepted.lanes)}. {rerun_sentence(source)}{dropped}"


def rerun_sentence(source: RoundSource) -> str:
    """Return what the reruns said, beside what the tickets had promised."""
    ledger, metric = source.ledger, source.plan.campaign.metric
    if not ledger.rerun:
        return "Nothing was rerun." if ledger.closed_utc else "Nothing was rerun yet."
    parts = []
    for record in ledger.rerun:
        verdict = record.verdict
        what = "The composed head" if record.kind == "rerun" else "The best single lane"
        ends = interval(verdict.low, verdict.high)
        range_words = f" (95 %: {ends})" if ends else ""
        gain = f"a gain of {percent(verdict.gain)}{range_words}" if verdict.gain is not None else "no gain"
        if verdict.gain is not None and metric.direction == "higher":
            gain += f", which is {_more(verdict.gain)}"
        parts.append(
            f"{what} with {_lanes(record.lanes)}, measured once more against I0 from fresh checkouts, "
            f"showed {gain}: {verdict.verdict}."
        )
    return " ".join(parts)


def telling_ticket(source: RoundSource, record: LaneRecord | OpenLane) -> TicketRecord | None:
    """Return the lane's selected ticket, else its last measured one, else its last."""
    own = [ticket for ticket in source.ledger.tickets if ticket.lane == record.lane]
    chosen = [ticket for ticket in own if ticket.ticket == record.selected]
    measured = [ticket for ticket in own if ticket.verdict is not None]
    return next(iter([*chosen, *measured[-1:], *own[-1:]]), None)


def telling_experiments(source: RoundSource) -> tuple[str, ...]:
    """Return the experiments whose raw samples tell most: the reruns', then those of the best tickets.

    A ticket is told by its last experiment. Lanes that composed come first, then whatever passed; where
    nothing did, the last ticket that was measured.
    """
    ledger = source.ledger
    reruns = [record.experiment for record in ledger.rerun if record.experiment is not None]
    selected = [record.selected for record in ledger.lanes if record.selected]
    measured = [ticket for ticket in ledger.tickets if ticket.verdict and ticket.experiments]
    telling = [ticket for ticket in measured if ticket.ticket in selected]
    telling = telling or [
        ticket for ticket in measured if ticket.verdict and ticket.verdict.verdict == "pass"
    ]
    best = sorted(
        telling or measured[-1:], key=lambda ticket: -((ticket.verdict and ticket.verdict.gain) or 0.0)
    )
    return (*reruns, *(ticket.experiments[-1] for ticket in best))[:MOST_EXPERIMENTS]


def samples_sentence(source: RoundSource) -> str:
    """Return whose raw samples are shown, and how many are not."""
    shown, there = len(telling_experiments(source)), len(source.experiment_ids)
    if not there:
        return "Nothing was measured yet." if source.ledger.closed_utc is None else "Nothing was measured."
    return (
        f"{counted(shown, 'experiment')} of {there}: the reruns, and the tickets that passed with the "
        f"largest estimates. The frame of trials holds all of them, and the evidence their raw samples."
    )


def page_title(source: RoundSource) -> str:
    """Return the title of a round's page."""
    return f"{source.ledger.campaign_id} {source.ledger.round_id}: {decision(source)}"


def audit_sentence(audit: AuditReport | None) -> str:
    """Return the result of an audit in words; None stands for a round that has nothing to audit yet."""
    if audit is None:
        return "provisional: there is no evidence to audit before the round is closed"
    if audit.passed:
        return f"all {len(audit.checks)} checks of the audit passed"
    first = audit.failures[0]
    where = f"{first.name}, {first.where}: {first.detail}"
    return f"the audit failed at {counted(len(audit.failures), 'place')}, the first: {where}"


def verdict_word(ticket: TicketRecord) -> str:
    """Return the verdict, or else the ticket's state."""
    return ticket.verdict.verdict if ticket.verdict else ticket.state


def step_words(step: CompositionStep) -> str:
    """Return how a lane fared in composition."""
    kept = "kept" if step.kept else "skipped"
    gain = f", {percent(step.verdict.gain)} over the head before" if step.verdict.gain is not None else ""
    return f"step {step.step}: {kept}{gain}"


def protocol(source: RoundSource) -> tuple[tuple[str, str], ...]:
    """Return how the round was measured, as name and value."""
    plan, spec = source.plan, source.run_spec
    gates, metric = plan.gates, plan.campaign.metric
    return (
        ("metric", f"{metric.name} in {metric.unit}, {metric.direction} is better"),
        ("a gain is", _GAINS[metric.direction]),
        ("instrument", _INSTRUMENTS[spec.benchmark.instrument]),
        *((("counted by", _counted_by(source)),) if spec.counting_tool is not None else ()),
        ("who holds the clock", _clock(source)),
        ("one experiment", _experiment(plan)),
        ("statistic", _statistics(source)),
        ("a pass needs", f"{number(gates.sigma_min)} sigma and a gain of {percent(gates.min_gain)} or more"),
        ("a fail needs", f"the same evidence of a loss beyond {percent(gates.loss_margin)}, or what broke"),
        ("guards", _guards(plan)),
        ("A/A checks", f"first of all, then every {counted(plan.aa_interval, 'measured ticket')}"),
        ("repeated at most", _repeats(gates)),
        ("devices", _devices(plan)),
        ("machine", _machines(source)),
        ("composed lanes alone once more", "yes" if plan.composition.fresh_standalone else "no"),
        ("when the rerun fails", plan.composition.fallback),
    )


def _lanes(lanes: tuple[str, ...]) -> str:
    return f"{'lane' if len(lanes) == 1 else 'lanes'} {joined(list(lanes))}"


def _more(gain: float) -> str:
    changed = change(gain, "higher")
    return f"{percent(abs(changed))} {'more' if changed >= 0 else 'less'} than before"


def _clock(source: RoundSource) -> str:
    if source.run_spec.benchmark.single_process:
        return "the benchmark's own process, which imports the candidate: reported, forgeable"
    return "a protected driver; the candidate answers from another process"


def titled(source: RoundSource, title: str) -> str:
    """Return the title of a table of figures, with what they leave out."""
    counted_ones = source.run_spec.benchmark.instrument == "instructions"
    return f"{title} ({INSTRUCTIONS_SAY_NOTHING})" if counted_ones else title


def warnings(spec: RunSpec) -> tuple[str, ...]:
    """Return what a reader of figures has to know: what they leave out, and who could forge them."""
    stands = {
        INSTRUCTIONS: spec.benchmark.instrument == "instructions",
        FORGEABLE: spec.benchmark.single_process,
        FORGEABLE_COUNT: spec.counting_tool == "valgrind",
    }
    return tuple(words for words, holds in stands.items() if holds)


def _counted_by(source: RoundSource) -> str:
    trials = [trial for record in source.experiments() for trial in record.trials]
    versions = {f"{trial.counted.tool}, {trial.counted.version}" for trial in trials if trial.counted}
    return joined(sorted(versions)) or f"{source.run_spec.counting_tool}: nothing was counted"


def _experiment(plan: RoundPlan) -> str:
    gates = plan.gates
    return (
        f"{gates.ab_ba_pairs} pairs in quads of ABBA or BAAB by a secret coin, one discarded warm-up a side, "
        f"{counted(gates.repetitions, 'repetition')} a trial reduced by the median; {_early(gates)}"
    )


def _repeats(gates: Gates) -> str:
    broke = f"{counted(gates.remeasure_limit, 'time')}, where the infrastructure broke"
    return f"{broke}; {counted(gates.repeats_for_order, 'time')}, where the order of trials mattered too much"


def _early(gates: Gates) -> str:
    early = gates.early_stopping
    if early is None:
        return "every pair is measured"
    return (
        f"a ticket's experiment may end at {early.first_look} pairs or after every {early.every} more, what "
        "close measures has every pair"
    )


def _statistics(source: RoundSource) -> str:
    ledger = source.ledger
    verdicts = [ticket.verdict for ticket in ledger.tickets if ticket.verdict is not None]
    used = {verdict.statistic for verdict in verdicts if verdict.statistic is not None}
    names = {"t": "t with n−2 degrees of freedom", "signed-rank": "exact signed rank"}
    return joined([names[name] for name in sorted(used)]) or "none: nothing was estimated"


def _guards(plan: RoundPlan) -> str:
    guards = plan.campaign.metric.guards
    words = []
    for guard in guards:
        if guard.unit is None:
            words.append(f"{guard.name} at most {percent(guard.limit)} worse than the baseline")
        else:
            bound = "at most" if guard.direction == "lower" else "at least"
            words.append(f"{guard.name} {bound} {number(guard.limit)} {guard.unit}")
    return "; ".join(words) or "none"


def _devices(plan: RoundPlan) -> str:
    sets = [f"{item.id} ({item.platform} {', '.join(item.devices)})" for item in plan.device_sets]
    return f"{joined(sets)}, {'pinned' if plan.cpu_pinning else 'not pinned'}"


def _machines(source: RoundSource) -> str:
    return joined(sorted({record.machine for record in source.experiments()})) or "nothing was measured"
