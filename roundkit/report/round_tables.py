"""The tables of a round's report, each a function from evidence to rows."""

from __future__ import annotations

from roundkit.models.attempts import AttemptRecord
from roundkit.models.ledger import CompositionStep, InteractionRatio, LaneRecord, TicketRecord
from roundkit.models.verdict import VerdictRecord
from roundkit.report import round_words as words
from roundkit.report.markup import interval, ratio
from roundkit.report.views import Heading, Missing, Table, Value
from roundkit.rounds.snapshot import OpenRound, RoundSource
from roundkit.rules.outcome import OpenLane


def decision_table(source: RoundSource) -> Table:
    """One row a lane: its ticket, verdict, gain, what became of it and why."""
    ledger = source.ledger
    steps = {step.lane: step for step in ledger.composition}
    return Table(
        words.titled(source, "What was decided about each lane"),
        (
            Heading("lane", "code"),
            Heading("ticket", "code"),
            Heading("verdict", "verdict"),
            Heading("ticket estimate", "percent"),
            Heading("95 % interval"),
            Heading("in composition"),
            Heading("outcome"),
            Heading("reason", "prose"),
        ),
        tuple(_decision_row(source, record, steps.get(record.lane)) for record in ledger.lanes),
    )


def _decision_row(
    source: RoundSource, record: LaneRecord | OpenLane, step: CompositionStep | None
) -> tuple[Value, ...]:
    ticket = words.telling_ticket(source, record)
    verdict = ticket.verdict if ticket else None
    return (
        record.lane,
        ticket.ticket if ticket else None,
        words.verdict_word(ticket) if ticket else None,
        _gain(ticket),
        interval(verdict.low, verdict.high) or None if verdict else None,
        words.step_words(step) if step else None,
        record.outcome,
        record.sentence,
    )


def lanes_table(source: RoundSource) -> Table:
    """What each lane set out to do, and what its agents cost where it had any."""
    plan = source.plan
    costs = {record.lane: record.cost for record in source.ledger.lanes}
    had_agents = any(costs.values())
    return Table(
        "Lanes as planned",
        (
            Heading("lane", "code"),
            Heading("entry", "code"),
            Heading("plane"),
            Heading("target stage"),
            Heading("hypothesis", "prose"),
            Heading("may change", "code"),
            Heading("harness"),
            Heading("model"),
            *((Heading("its agents", "prose"),) if had_agents else ()),
        ),
        tuple(
            (
                lane.id,
                lane.entry,
                lane.plane,
                lane.target_stage,
                lane.hypothesis,
                " ".join(lane.globs),
                lane.harness,
                lane.model,
                *((costs.get(lane.id) or None,) if had_agents else ()),
            )
            for lane in plan.lanes
        ),
    )


def all_tickets(source: RoundSource) -> Table:
    """Every ticket with the numbers behind its verdict."""
    return Table(
        words.titled(source, "Every ticket"),
        (
            Heading("#", "number"),
            Heading("ticket", "code"),
            Heading("verdict", "verdict"),
            Heading("estimate", "percent"),
            Heading("95 % interval"),
            Heading("z", "number"),
            Heading("pairs", "number"),
            Heading("why", "prose"),
        ),
        tuple(
            (
                ticket.sequence,
                ticket.ticket,
                words.verdict_word(ticket),
                _gain(ticket),
                interval(ticket.verdict.low, ticket.verdict.high) or None if ticket.verdict else None,
                ticket.verdict.z if ticket.verdict else None,
                ticket.verdict.pairs if ticket.verdict else None,
                _why(ticket),
            )
            for ticket in source.ledger.tickets
        ),
    )


def composition_table(source: RoundSource) -> Table:
    """Every composition step and rerun with its measurement."""
    ledger = source.ledger
    steps: list[tuple[Value, ...]] = [
        (
            f"{step.step}. {step.lane}",
            step.verdict.verdict,
            _verdict_gain(step.verdict),
            interval(step.verdict.low, step.verdict.high) or None,
            "the ticket's own" if step.reused else "anew",
            _ratio(step.ratio),
            step.ratio.basis,
            "kept" if step.kept else "skipped",
        )
        for step in ledger.composition
    ]
    reruns: list[tuple[Value, ...]] = [
        (
            record.kind,
            record.verdict.verdict,
            _verdict_gain(record.verdict),
            interval(record.verdict.low, record.verdict.high) or None,
            "anew, against I0",
            None,
            None,
            "accepted" if record.verdict.verdict == "pass" else "not accepted",
        )
        for record in ledger.rerun
    ]
    return Table(
        words.titled(source, "Composition and rerun"),
        (
            Heading("step"),
            Heading("verdict", "verdict"),
            Heading("gain", "percent"),
            Heading("95 % interval"),
            Heading("measured"),
            Heading("interaction ratio", "number"),
            Heading("standalone gain"),
            Heading("outcome"),
        ),
        tuple(steps + reruns),
        empty="Nothing is composed before the round is closed."
        if isinstance(source, OpenRound)
        else "No ticket passed, so nothing was composed and nothing was rerun.",
    )


def rejected_table(source: RoundSource) -> Table:
    """Every submission that was turned away, with its cause."""
    ledger = source.ledger
    tickets: list[tuple[Value, ...]] = [
        (ticket.lane, ticket.ticket, ticket.reject_cause, ticket.reject_detail, ticket.intake_utc)
        for ticket in ledger.tickets
        if ticket.state == "rejected"
    ]
    entries: list[tuple[Value, ...]] = [
        (entry.lane, entry.entry, entry.cause, entry.detail, entry.intake_utc)
        for entry in ledger.rejected_submissions
    ]
    return Table(
        "Rejected submissions",
        (
            Heading("lane", "code"),
            Heading("ticket or entry", "code"),
            Heading("cause"),
            Heading("detail", "prose"),
            Heading("intake", "time"),
        ),
        tuple(tickets + entries),
        empty="No submission was rejected.",
    )


def attempts_table(source: RoundSource) -> Table:
    """Every attempt of an agent: how it ended, what it is charged and what it used."""
    return Table(
        "Attempts",
        (
            Heading("lane", "code"),
            Heading("attempt", "number"),
            Heading("run", "code"),
            Heading("phase"),
            Heading("claimed", "time"),
            Heading("charged (µUSD)", "number"),
            Heading("used (µUSD)", "number"),
            Heading("tokens", "number"),
            Heading("wall time (s)", "number"),
        ),
        tuple(_attempt_row(record) for record in source.ledger.attempts),
        empty="No attempt of an agent is in the ledger: lanes were filled by hand, or not at all.",
    )


def _attempt_row(record: AttemptRecord) -> tuple[Value, ...]:
    binding, actual = record.binding, record.actual
    unsettled = Missing(f"{record.phase}, never settled")
    uncounted = Missing("nobody counted")
    used: list[Value] = [
        unsettled if actual is None else uncounted if amount is None else amount
        for amount in ((actual.micro_usd, actual.tokens, actual.wall_s) if actual else (None, None, None))
    ]
    return (
        binding.lane,
        binding.ordinal,
        binding.run_id,
        record.phase,
        record.claimed_utc,
        binding.worst_case.micro_usd,
        *used,
    )


def _why(ticket: TicketRecord) -> str:
    if ticket.verdict is not None:
        return ticket.verdict.sentence
    return f"rejected: {ticket.reject_cause}" if ticket.reject_cause else f"{ticket.state}, not measured yet"


def _gain(ticket: TicketRecord | None) -> Value:
    if ticket is None:
        return Missing("nothing was submitted")
    if ticket.verdict is None:
        return Missing(f"rejected, {ticket.reject_cause}" if ticket.reject_cause else ticket.state)
    return _verdict_gain(ticket.verdict)


def _verdict_gain(verdict: VerdictRecord) -> Value:
    return verdict.gain if verdict.gain is not None else Missing(verdict.reason)


def _ratio(found: InteractionRatio) -> Value:
    if found.value is None:
        return Missing("the standalone gain is not clearly above zero")
    return ratio(found.value)
