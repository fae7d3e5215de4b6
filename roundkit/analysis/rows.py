"""From one round, closed or open, to the rows of each frame; its own row is made in ``round_row``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from roundkit.analysis.round_row import Row, of_round, round_rows
from roundkit.core.canonical import canonical_bytes
from roundkit.evidence import RoundEvidence
from roundkit.models.agent_run import AgentRun, Usage
from roundkit.models.attempts import Cost
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import TicketRecord
from roundkit.models.verdict import VerdictRecord
from roundkit.rounds.snapshot import RoundSource

_LANE_FIELDS = (
    "lane", "entry", "plane", "harness", "model", "selected", "ticket_gain", "outcome", "entry_status",
    "attempts", "cost_micro_usd", "sentence",
)  # fmt: skip


def lane_rows(source: RoundSource) -> Iterator[Row]:
    """Yield one row a lane."""
    planned = {lane.id: lane for lane in source.plan.lanes}
    for record in source.ledger.lanes:
        lane = planned[record.lane]
        yield {
            **of_round(source),
            **{name: getattr(record, name) for name in _LANE_FIELDS},
            "target_stage": lane.target_stage,
            "hypothesis": lane.hypothesis,
            "deadline_utc": lane.deadline_utc,
            "tickets": len(record.tickets),
        }


def attempt_rows(source: RoundSource) -> Iterator[Row]:
    """Yield one row an attempt, in order of reservation."""
    budgets = {lane.id: lane.budget for lane in source.plan.lanes}
    for record in source.ledger.attempts:
        binding, actual = record.binding, record.actual or Cost()
        vectors = {"cap": budgets[binding.lane], "charged": binding.worst_case, "actual": actual}
        yield {
            **of_round(source),
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


def ticket_rows(source: RoundSource) -> Iterator[Row]:
    """Yield one row a ticket, rejected ones included."""
    selected = {record.selected for record in source.ledger.lanes}
    decided = isinstance(source, RoundEvidence) or bool(source.ledger.composition)
    for ticket in source.ledger.tickets:
        verdict = ticket.verdict
        yield {
            **of_round(source),
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
            "selected": ticket.ticket in selected if decided else None,
            "files": len(ticket.manifest.entries),
            "intake_utc": ticket.intake_utc,
            "measured_utc": ticket.measured_utc,
            "candidate_commit": ticket.candidate_commit,
            "provenance": ticket.provenance,
        }


def trial_rows(source: RoundSource) -> Iterator[Row]:
    """Yield one row a trial, in order of time."""
    metric = source.run_spec.metric.name
    for record in _in_time(source):
        for trial in record.trials:
            yield {
                **of_round(source),
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


def composition_rows(source: RoundSource) -> Iterator[Row]:
    """Yield one row a composition step, then one a rerun."""
    for step in source.ledger.composition:
        yield {
            **of_round(source),
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
    for rerun in source.ledger.rerun:
        yield {
            **of_round(source),
            "kind": rerun.kind,
            "experiment": rerun.experiment,
            "reused": False,
            "kept": rerun.verdict.verdict == "pass",
            "verdict": rerun.verdict.verdict,
            "reason": rerun.verdict.reason,
            **_estimate(rerun.verdict),
        }


def device_rows(source: RoundSource) -> Iterator[Row]:
    """Yield one row a device and lease."""
    for record in _in_time(source):
        if record.lease is None:
            continue
        for device in record.lease.devices:
            yield {
                **of_round(source),
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


def aa_rows(source: RoundSource) -> Iterator[Row]:
    """Yield one row an A/A check."""
    drift = source.plan.campaign.test_plan.drift
    for number, check in enumerate(source.ledger.aa_checks, start=1):
        yield {
            **of_round(source),
            "number": number,
            **check.model_dump(),
            "limit": drift.limit,
            "single_limit": drift.single_limit,
        }


def event_rows(source: RoundSource) -> Iterator[Row]:
    """Yield one row an event."""
    for position, event in enumerate(source.events):
        yield {
            **of_round(source),
            "position": position,
            "time_utc": event.time,
            "kind": event.kind,
            "fields": canonical_bytes(event.fields).decode(),
        }


ROWS: dict[str, Callable[[RoundSource], Iterator[Row]]] = {
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


def _in_time(source: RoundSource) -> list[ExperimentRecord]:
    return sorted(source.experiments(), key=lambda record: (record.started_utc, record.experiment_id))


def _estimate(verdict: VerdictRecord | None) -> Row:
    names = ("gain", "low", "high")
    return {name: getattr(verdict, name) if verdict else None for name in names}


def _why_no_estimate(ticket: TicketRecord) -> str | None:
    if ticket.verdict is None:
        return f"rejected: {ticket.reject_cause}" if ticket.reject_cause else ticket.state
    return None if ticket.verdict.gain is not None else f"{ticket.verdict.verdict}: {ticket.verdict.reason}"
