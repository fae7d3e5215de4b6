"""From one round's evidence to the rows of each frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from roundkit.core.canonical import canonical_bytes
from roundkit.evidence import RoundEvidence
from roundkit.models.agent_run import AgentRun, Usage
from roundkit.models.attempts import Cost
from roundkit.models.campaign import Direction
from roundkit.models.ledger import RerunRecord, RoundLedger, TicketRecord
from roundkit.models.measurement import ExperimentRecord, VerdictRecord

Row = dict[str, Any]


def _round(evidence: RoundEvidence) -> Row:
    return {"campaign": evidence.index.campaign_id, "round": evidence.index.subject_id}


def round_rows(evidence: RoundEvidence) -> Iterator[Row]:
    """Yield the one row of the round."""
    plan, ledger, gates = evidence.plan, evidence.ledger, evidence.plan.gates
    rerun = _deciding_rerun(ledger)
    verdict = rerun.verdict if rerun else None
    yield {
        **_round(evidence),
        "source": evidence.path.resolve().name,
        "round_digest": evidence.round_digest,
        "evidence_digest": evidence.digest,
        "previous": evidence.index.previous,
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
        "forgeable": evidence.run_spec.forgeable,
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


def lane_rows(evidence: RoundEvidence) -> Iterator[Row]:
    """Yield one row a lane."""
    planned = {lane.id: lane for lane in evidence.plan.lanes}
    for record in evidence.ledger.lanes:
        lane = planned[record.lane]
        yield {
            **_round(evidence),
            **record.model_dump(include={"lane", "entry", "plane", "harness", "model", "selected"}),
            **record.model_dump(include={"ticket_gain", "outcome", "entry_status", "attempts", "sentence"}),
            "target_stage": lane.target_stage,
            "hypothesis": lane.hypothesis,
            "deadline_utc": lane.deadline_utc,
            "tickets": len(record.tickets),
            "cost_micro_usd": record.cost_micro_usd,
        }


def attempt_rows(evidence: RoundEvidence) -> Iterator[Row]:
    """Yield one row an attempt, in order of reservation."""
    budgets = {lane.id: lane.budget for lane in evidence.plan.lanes}
    for record in evidence.ledger.attempts:
        binding, actual = record.binding, record.actual or Cost()
        vectors = {"cap": budgets[binding.lane], "charged": binding.worst_case, "actual": actual}
        yield {
            **_round(evidence),
            **binding.model_dump(include={"lane", "ordinal", "run_id", "plan_digest"}),
            **record.model_dump(exclude={"binding", "actual", "run"}),
            **_run(record.run),
            "missing": None if record.actual is not None else f"{record.phase}, never settled",
            **{f"{kind}_{name}": amount for kind, vector in vectors.items() for name, amount in vector},
        }


def _run(run: AgentRun | None) -> Row:
    """Return what is known of an agent's run; all null where none ran."""
    usage = run.usage if run is not None else Usage()
    return {
        "end_reason": run.end_reason if run is not None else None,
        "cli_version": run.cli_version if run is not None else None,
        "model_reported": usage.model,
        "usd_basis": usage.basis if run is not None else None,
        **{f"tokens_{name}": amount for name, amount in usage.tokens},
    }


def ticket_rows(evidence: RoundEvidence) -> Iterator[Row]:
    """Yield one row a ticket, rejected ones included."""
    selected = {record.selected for record in evidence.ledger.lanes}
    for ticket in evidence.ledger.tickets:
        verdict = ticket.verdict
        yield {
            **_round(evidence),
            "lane": ticket.lane,
            "ticket": ticket.ticket,
            "sequence": ticket.sequence,
            "state": ticket.state,
            "verdict": verdict.verdict if verdict else None,
            "reason": verdict.reason if verdict else ticket.reject_cause,
            "sentence": verdict.sentence if verdict else ticket.reject_detail,
            **_estimate(verdict),
            "gain_unit": verdict.gain_unit if verdict else None,
            "missing": _why_no_estimate(ticket),
            "z": verdict.z if verdict else None,
            "z_required": verdict.z_required if verdict else None,
            "pairs": verdict.pairs if verdict else None,
            "stop": verdict.looks[-1].stop if verdict and verdict.looks else None,
            "smallest_detectable_gain": verdict.smallest_detectable_gain if verdict else None,
            "baseline_median": verdict.baseline_median if verdict else None,
            "candidate_median": verdict.candidate_median if verdict else None,
            "order_effect": verdict.order_effect if verdict else None,
            "selected": ticket.ticket in selected,
            "files": len(ticket.manifest.entries),
            "intake_utc": ticket.intake_utc,
            "measured_utc": ticket.measured_utc,
            "candidate_commit": ticket.candidate_commit,
            "provenance": ticket.provenance,
        }


def trial_rows(evidence: RoundEvidence) -> Iterator[Row]:
    """Yield one row a trial, in order of time."""
    metric = evidence.run_spec.metric.name
    for record in _in_time(evidence):
        for trial in record.trials:
            yield {
                **_round(evidence),
                "experiment": record.experiment_id,
                "purpose": record.purpose,
                "subject": record.subject,
                "lane": record.lane,
                "position": trial.planned.index,
                "pair": trial.planned.pair,
                "side": trial.planned.side,
                "order": trial.planned.order,
                "seed": trial.planned.seed,
                "value": trial.value,
                "samples": list(trial.metrics.get(metric, ())),
                "problem": trial.problem,
                "detail": trial.detail,
                "started_utc": trial.started_utc,
                "ended_utc": trial.ended_utc,
                "wall_s": trial.resources.wall_s,
                "cpu_s": trial.resources.cpu_s,
                "peak_memory_bytes": trial.resources.peak_memory_bytes,
            }


def composition_rows(evidence: RoundEvidence) -> Iterator[Row]:
    """Yield one row a composition step, then one a rerun."""
    for step in evidence.ledger.composition:
        yield {
            **_round(evidence),
            "kind": "step",
            **step.model_dump(include={"step", "lane", "ticket", "experiment", "reused", "kept"}),
            "verdict": step.verdict.verdict,
            "reason": step.verdict.reason,
            **_estimate(step.verdict),
            "ratio": step.ratio.value,
            "ratio_low": step.ratio.low,
            "ratio_high": step.ratio.high,
            "ratio_basis": step.ratio.basis,
        }
    for rerun in evidence.ledger.rerun:
        yield {
            **_round(evidence),
            "kind": rerun.kind,
            "experiment": rerun.experiment,
            "reused": False,
            "kept": rerun.verdict.verdict == "pass",
            "verdict": rerun.verdict.verdict,
            "reason": rerun.verdict.reason,
            **_estimate(rerun.verdict),
        }


def device_rows(evidence: RoundEvidence) -> Iterator[Row]:
    """Yield one row a device and lease."""
    for record in _in_time(evidence):
        if record.lease is None:
            continue
        for device in record.lease.devices:
            yield {
                **_round(evidence),
                "device": device,
                "device_set": record.lease.device_set,
                "experiment": record.experiment_id,
                "purpose": record.purpose,
                "subject": record.subject,
                "lane": record.lane,
                "acquired_utc": record.lease.acquired_utc,
                "released_utc": record.lease.released_utc,
                "held_s": (record.lease.released_utc - record.lease.acquired_utc).total_seconds(),
            }


def aa_rows(evidence: RoundEvidence) -> Iterator[Row]:
    """Yield one row an A/A check."""
    drift = evidence.plan.campaign.test_plan.drift
    for number, check in enumerate(evidence.ledger.aa_checks, start=1):
        yield {
            **_round(evidence),
            "number": number,
            **check.model_dump(),
            "limit": drift.limit,
            "single_limit": drift.single_limit,
        }


def event_rows(evidence: RoundEvidence) -> Iterator[Row]:
    """Yield one row an event."""
    for position, event in enumerate(evidence.events):
        yield {
            **_round(evidence),
            "position": position,
            "time_utc": event.time,
            "kind": event.kind,
            "fields": canonical_bytes(event.fields).decode(),
        }


ROWS: dict[str, Callable[[RoundEvidence], Iterator[Row]]] = {
    "rounds": round_rows,
    "lanes": lane_rows,
    "attempts": attempt_rows,
    "tickets": ticket_rows,
    "trials": trial_rows,
    "compositions": composition_rows,
    "devices": device_rows,
    "aa_checks": aa_rows,
    "events": event_rows,
}


def _in_time(evidence: RoundEvidence) -> list[ExperimentRecord]:
    return sorted(evidence.experiments(), key=lambda record: (record.started_utc, record.experiment_id))


def _estimate(verdict: VerdictRecord | None) -> Row:
    names = ("gain", "low", "high")
    return {name: getattr(verdict, name) if verdict else None for name in names}


def _why_no_estimate(ticket: TicketRecord) -> str | None:
    if ticket.verdict is None:
        return f"rejected: {ticket.reject_cause}" if ticket.reject_cause else ticket.state
    return None if ticket.verdict.gain is not None else f"{ticket.verdict.verdict}: {ticket.verdict.reason}"


def _deciding_rerun(ledger: RoundLedger) -> RerunRecord | None:
    passing = [record for record in ledger.rerun if record.verdict.verdict == "pass"]
    return next(iter([*passing, *ledger.rerun[:1]]), None)


def _added_up(ledger: RoundLedger, rerun: RerunRecord | None, direction: Direction) -> float | None:
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


def _why_no_gain(ledger: RoundLedger) -> str:
    if not ledger.composition:
        return "no ticket passed"
    if not ledger.rerun:
        return "no composition step passed"
    last = ledger.rerun[-1]
    return f"{last.kind} {last.verdict.verdict}: {last.verdict.reason}"
