"""From one round, closed or open, to its own row: what it was, what it gained, or why there is no gain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from roundkit.evidence import RoundEvidence
from roundkit.models.campaign import Direction
from roundkit.models.ledger import RerunRecord, RoundLedger
from roundkit.rounds.snapshot import OpenLedger, OpenRound, RoundSource

Row = dict[str, Any]


def of_round(source: RoundSource) -> Row:
    """Return the two columns that say which round a row is of."""
    return {"campaign": source.plan.campaign.campaign_id, "round": source.plan.round_id}


def round_rows(source: RoundSource) -> Iterator[Row]:
    """Yield the one row of the round."""
    plan, ledger, gates = source.plan, source.ledger, source.plan.gates
    rerun = _deciding_rerun(ledger)
    verdict = rerun.verdict if rerun else None
    yield {
        **of_round(source),
        "source": source.path.resolve().name,
        "state": source.state if isinstance(source, OpenRound) else "closed",
        "paused": source.paused if isinstance(source, OpenRound) else None,
        "round_digest": source.round_digest,
        "evidence_digest": source.digest,
        "previous": source.index.previous if isinstance(source, RoundEvidence) else None,
        "incumbent": ledger.incumbent,
        "head": ledger.head,
        "advanced": ledger.advanced,
        "opened_utc": ledger.opened_utc,
        "closed_utc": ledger.closed_utc,
        "lanes": len(ledger.lanes),
        "tickets": len(ledger.tickets),
        "rejected": sum(t.state == "rejected" for t in ledger.tickets) + len(ledger.rejected_submissions),
        "metric": plan.campaign.metric.name,
        "unit": plan.campaign.metric.unit,
        "direction": plan.campaign.metric.direction,
        "instrument": plan.campaign.benchmark.instrument,
        "forgeable": source.run_spec.forgeable,
        "min_gain": gates.min_gain,
        "sigma_min": gates.sigma_min,
        "pairs": gates.ab_ba_pairs,
        "ticket_gain": _added_up(ledger, rerun, plan.campaign.metric.direction),
        "rerun_verdict": verdict.verdict if verdict else None,
        "rerun_gain": verdict.gain if verdict else None,
        "rerun_low": verdict.low if verdict else None,
        "rerun_high": verdict.high if verdict else None,
        "gain": ledger.gain,
        "missing": None if ledger.gain is not None else _why_no_gain(ledger),
        "provenance": ", ".join(sorted({ticket.provenance for ticket in ledger.tickets})) or None,
    }


def _deciding_rerun(ledger: RoundLedger | OpenLedger) -> RerunRecord | None:
    passing = [record for record in ledger.rerun if record.verdict.verdict == "pass"]
    return next(iter([*passing, *ledger.rerun[:1]]), None)


def _added_up(
    ledger: RoundLedger | OpenLedger, rerun: RerunRecord | None, direction: Direction
) -> float | None:
    """What the selected tickets promise together: added up in the unit, then as a fraction like a gain."""
    if rerun is None:
        return None
    selected = {record.selected for record in ledger.lanes if record.lane in rerun.lanes}
    verdicts = [ticket.verdict for ticket in ledger.tickets if ticket.ticket in selected and ticket.verdict]
    saved = [verdict.gain_unit for verdict in verdicts if verdict.gain_unit is not None]
    bases = [verdict.baseline_median for verdict in verdicts if verdict.baseline_median is not None]
    if not saved or not bases:
        return None
    total, base = sum(saved), sum(bases) / len(bases)
    return round(total / base if direction == "lower" else total / (base + total), 9)


def _why_no_gain(ledger: RoundLedger | OpenLedger) -> str:
    if isinstance(ledger, OpenLedger):
        return "the round is not closed"
    if not ledger.composition:
        return "no ticket passed"
    if not ledger.rerun:
        return "no composition step passed"
    last = ledger.rerun[-1]
    return f"{last.kind} {last.verdict.verdict}: {last.verdict.reason}"
