"""From an experiment's raw trials to its verdict. Serve, close and audit all decide here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from roundkit.models.experiment import ExperimentRecord
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import Trial
from roundkit.models.verdict import LookRecord, VerdictName, VerdictRecord
from roundkit.rules.looks import take_looks
from roundkit.rules.verdict_words import sentence_of
from roundkit.stats.differences import gain_fraction, gain_in_unit, paired_differences
from roundkit.stats.estimate import Estimate, Order, crossover_estimate, delta_interval
from roundkit.stats.guards import GuardResult, absolute_guard, relative_guard
from roundkit.stats.verdict import Gates, VerdictDecision, verdict


@dataclass(frozen=True)
class Samples:
    """The deciding figure of every complete pair, in order of pairs."""

    baseline: tuple[float, ...]
    candidate: tuple[float, ...]
    order: tuple[Order, ...]
    trials: tuple[tuple[Trial, Trial], ...]


def collect_samples(record: ExperimentRecord) -> Samples:
    """Return the pairs of which both trials are valid; warm-ups do not count."""
    sides: dict[int, dict[str, Trial]] = {}
    for trial in record.trials:
        if trial.planned.pair is not None and trial.problem is None and trial.value is not None:
            sides.setdefault(trial.planned.pair, {})[trial.planned.side] = trial
    pairs = tuple(
        (sides[pair]["baseline"], sides[pair]["candidate"]) for pair in sorted(sides) if len(sides[pair]) == 2
    )
    return Samples(
        baseline=tuple(_value(first) for first, _ in pairs),
        candidate=tuple(_value(second) for _, second in pairs),
        order=tuple(first.planned.order for first, _ in pairs),
        trials=pairs,
    )


def decide(record: ExperimentRecord, spec: RunSpec) -> VerdictRecord:
    """Return the verdict that an experiment's samples give under a run specification.

    Args:
        record: The experiment, raw.
        spec: Metric, gates and benchmark shape.
    """
    samples = collect_samples(record)
    estimate: Estimate | None = None
    looks: tuple[LookRecord, ...] = ()
    session_sd = None if record.session_noise is None else math.sqrt(record.session_noise.variance)
    if samples.baseline:
        differences = paired_differences(samples.baseline, samples.candidate, spec.metric.direction)
        estimate = crossover_estimate(
            differences, samples.order, statistic=spec.gates.statistic, tau=session_sd or 0.0
        )
        if record.look_plan is not None:
            looks = take_looks(differences, samples.order, record.look_plan, session_sd or 0.0)
    guards = _guards(samples, spec) if samples.trials else ()
    decision = verdict(
        estimate,
        Gates(
            min_gain=spec.gates.min_gain,
            loss_margin=spec.gates.loss_margin,
            z_min=spec.gates.sigma_min,
            order_margin=spec.gates.order_margin,
        ),
        guards=guards,
        candidate_cause=record.reason if record.outcome == "candidate-broke" else None,
        invalid_cause=_invalid_cause(record),
        z_boundary=looks[-1].boundary if looks else None,
        futile=bool(looks) and looks[-1].stop == "futility",
        tau=session_sd or 0.0,
    )
    shown = _record(decision, estimate, samples, guards, spec, session_sd)
    return shown.model_copy(update={"looks": looks})


def unmeasured(reason: str, spec: RunSpec, *, verdict_name: VerdictName = "not-measured") -> VerdictRecord:
    """Return the verdict of something that has no samples at all, with the reason why."""
    return VerdictRecord(
        verdict=verdict_name,
        reason=reason,
        sentence=f"{verdict_name}: {reason}",
        pairs=0,
        gain=None,
        gain_unit=None,
        low=None,
        high=None,
        z=None,
        delta=None,
        standard_error=None,
        statistic=None,
        order_effect=None,
        order_standard_error=None,
        baseline_median=None,
        candidate_median=None,
        smallest_detectable_gain=None,
        forgeable=spec.forgeable,
    )


def _invalid_cause(record: ExperimentRecord) -> str | None:
    if record.outcome in {"baseline-broke", "infrastructure"}:
        return record.reason or record.outcome
    return None


def _guards(samples: Samples, spec: RunSpec) -> tuple[GuardResult, ...]:
    results = []
    for guard in spec.metric.guards:
        baseline = [_guard_value(first, guard.name) for first, _ in samples.trials]
        candidate = [_guard_value(second, guard.name) for _, second in samples.trials]
        if guard.unit is None:
            results.append(relative_guard(guard.name, baseline, candidate, guard.direction, guard.limit))
        else:
            results.append(absolute_guard(guard.name, candidate, guard.direction, guard.limit))
    return tuple(results)


def _guard_value(trial: Trial, name: str) -> float:
    if name in trial.metrics:
        return float(median(trial.metrics[name]))
    raise ValueError(f"trial {trial.planned.index} has no guard metric {name!r}")


def _record(
    decision: VerdictDecision,
    estimate: Estimate | None,
    samples: Samples,
    guards: tuple[GuardResult, ...],
    spec: RunSpec,
    session_sd: float | None,
) -> VerdictRecord:
    interval = delta_interval(estimate, tau=session_sd or 0.0) if estimate is not None else None
    direction = spec.metric.direction
    return VerdictRecord(
        verdict=decision.verdict,
        reason=decision.reason,
        sentence=sentence_of(decision, spec),
        pairs=decision.n,
        gain=decision.gain,
        gain_unit=gain_in_unit(samples.baseline, estimate.delta, direction) if estimate is not None else None,
        low=gain_fraction(interval[0]) if interval else None,
        high=gain_fraction(interval[1]) if interval else None,
        z=decision.z_eff,
        delta=estimate.delta if estimate else None,
        standard_error=estimate.se if estimate else None,
        statistic=estimate.statistic if estimate else None,
        order_effect=estimate.order_effect if estimate else None,
        order_standard_error=estimate.order_se if estimate else None,
        baseline_median=float(median(samples.baseline)) if samples.baseline else None,
        candidate_median=float(median(samples.candidate)) if samples.candidate else None,
        smallest_detectable_gain=decision.mde,
        z_required=decision.z_required if estimate is not None else None,
        session_sd=session_sd,
        guards={guard.name: guard.ok for guard in guards},
        forgeable=spec.forgeable,
    )


def _value(trial: Trial) -> float:
    if trial.value is None:
        raise ValueError(f"trial {trial.planned.index} has no value")
    return trial.value
