"""One experiment's record held against its run specification, the secret, its raw samples and the clocks.

The audit of a round and ``roundkit measure --from`` both check with these functions, so that neither believes
what the other would not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import median

from roundkit.models.experiment import ExperimentRecord, Lease
from roundkit.models.readings import (
    candidate_role,
    clock_role,
    exceeds_clock,
    figure_problem,
    own_metrics,
    unexplained_growth,
)
from roundkit.models.round_plan import DeviceSet
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import Trial
from roundkit.rules.device_checks import limit_problems
from roundkit.rules.disagreement import Disagreement, differs
from roundkit.rules.identity import experiment_name
from roundkit.rules.looks import plan_looks
from roundkit.rules.process_checks import confinement_problems, end_problems
from roundkit.rules.schedule import plan_schedule
from roundkit.rules.verdict import decide

_READ = ("wall_s", "cpu_s", "peak_memory_bytes")

RecordCheck = Callable[[ExperimentRecord, RunSpec], Iterator[Disagreement]]


def record_problems(
    record: ExperimentRecord,
    spec: RunSpec,
    *,
    secret: bytes,
    owner: str,
    device_sets: Sequence[DeviceSet],
) -> Iterator[Disagreement]:
    """Yield everything in which one experiment's record does not agree with itself and its plan.

    Args:
        record: The experiment, raw.
        spec: How its trials had to run.
        secret: Coins and seeds come from it.
        owner: The round or comparison that it belongs to.
        device_sets: Those that the plan allows.
    """
    yield from identity_problems(record, spec, owner)
    yield from schedule_problems(record, spec, secret)
    for check in PER_RECORD:
        yield from check(record, spec)
    yield from lease_problems(record, device_sets)
    yield from limit_problems(record, device_sets)


def identity_problems(record: ExperimentRecord, spec: RunSpec, owner: str) -> Iterator[Disagreement]:
    """Yield what is wrong with an experiment's name and outcome."""
    for what, stands, computed in (
        ("experiment_id", record.experiment_id, experiment_name(record.subject, record.attempt)),
        ("round_id", record.round_id, owner),
        ("run_spec_sha256", record.run_spec_sha256, spec.digest()),
    ):
        if stands != computed:
            yield differs(record.experiment_id, what, stands, computed)
    if (record.outcome == "complete") != (record.reason is None):
        yield Disagreement(record.experiment_id, "outcome and reason do not go together")
    problems = [trial.problem for trial in record.trials if trial.problem is not None]
    if record.outcome == "complete" and problems:
        yield Disagreement(record.experiment_id, f"complete, though a trial has the problem {problems[0]}")
    yield from _broke_problems(record, spec)


def _broke_problems(record: ExperimentRecord, spec: RunSpec) -> Iterator[Disagreement]:
    """A side is only said to have broken by what its last trial, or the clocks of all of them, show."""
    if record.outcome not in ("candidate-broke", "baseline-broke"):
        return
    last = record.trials[-1] if record.trials else None
    if last is not None and last.problem is not None:
        side, found = last.planned.side, last.problem
    else:
        grew = unexplained_growth(record.trials, spec) is not None
        side, found = "candidate", "candidate-clock" if grew else "nothing"
    if (record.outcome, record.reason) != (f"{side}-broke", found):
        yield differs(record.experiment_id, "what broke", record.reason, found)


def schedule_problems(record: ExperimentRecord, spec: RunSpec, secret: bytes) -> Iterator[Disagreement]:
    """Yield where the trials are not those that the secret gives."""
    planned = plan_schedule(secret, spec.round_digest, record.experiment_id, spec.gates.ab_ba_pairs)
    ran = tuple(trial.planned for trial in record.trials)
    if ran != planned[: len(ran)]:
        at = next(
            number for number, row in enumerate(ran) if number >= len(planned) or row != planned[number]
        )
        yield Disagreement(record.experiment_id, f"trial {at} is not the one that the secret gives")
    elif record.outcome == "complete" and record.look_plan is None and len(ran) != len(planned):
        yield differs(record.experiment_id, "number of trials", len(ran), len(planned))


def value_problems(record: ExperimentRecord, spec: RunSpec) -> Iterator[Disagreement]:
    """Yield values that are not the median of their samples, or not what the coordinator itself read."""
    for trial in record.trials:
        if trial.problem is not None and trial.value is None:
            continue
        where = f"{record.experiment_id} trial {trial.planned.index}"
        samples = trial.metrics.get(spec.metric.name, ())
        computed = float(median(samples)) if samples else None
        if not _same(trial.value, computed):
            yield differs(where, "value", trial.value, computed)
        yield from _impossible_values(where, trial, spec)
        yield from _reading_problems(where, trial, spec)
        if spec.validator is not None and trial.validated is not True:
            yield Disagreement(where, "has a value, though its outputs were not validated")


def _impossible_values(where: str, trial: Trial, spec: RunSpec) -> Iterator[Disagreement]:
    """Yield what no trial without a problem reports: figures out of range, or a metric that is missing."""
    if trial.problem is not None:
        return
    own = own_metrics(spec, trial.resources, trial.counted)
    for name in (spec.metric.name, *(guard.name for guard in spec.metric.guards)):
        values, decides = trial.metrics.get(name, ()), name == spec.metric.name
        if name in own:
            continue
        if not values:
            yield Disagreement(where, f"metric {name} is missing")
        elif problem := figure_problem(name, values, decides=decides):
            yield Disagreement(where, problem)


def _reading_problems(where: str, trial: Trial, spec: RunSpec) -> Iterator[Disagreement]:
    for name, own in own_metrics(spec, trial.resources, trial.counted).items():
        stands = trial.value if name == spec.metric.name else next(iter(trial.metrics.get(name, ())), None)
        if own is None or not _same(stands, own):
            yield differs(where, "value" if name == spec.metric.name else name, stands, own)
    run = trial.executions.get(candidate_role(spec))
    for name in () if run is None else _READ:
        stands, read = getattr(trial.resources, name), getattr(run, name)
        if stands != read:
            yield differs(where, f"the coordinator's {name}", stands, read)


def count_problems(record: ExperimentRecord, spec: RunSpec) -> Iterator[Disagreement]:
    """Hold every count against the plan's tool, and its total against its processes."""
    tool = spec.counting_tool
    for trial in record.trials:
        where = f"{record.experiment_id} trial {trial.planned.index}"
        counted = trial.counted
        if counted is None:
            if tool is not None and trial.problem is None:
                yield Disagreement(where, "has no count, though instructions decide")
            continue
        if counted.tool != tool:
            yield differs(where, "counting tool", counted.tool, tool)
        whole = sum(process.instructions for process in counted.processes)
        if (counted.tool == "valgrind" or counted.processes) and whole != counted.total:
            yield differs(where, "total of the processes", counted.total, whole)


def clock_problems(record: ExperimentRecord, spec: RunSpec) -> Iterator[Disagreement]:
    """Yield reported times that the coordinator's clock does not bear."""
    tolerance = spec.benchmark.clock_tolerance
    if tolerance is None or spec.benchmark.instrument != "reported":
        return
    for trial in record.trials:
        clock = trial.executions.get(clock_role(spec))
        reported = trial.metrics.get(spec.metric.name, ())
        if trial.problem is not None or clock is None or clock.wall_s is None:
            continue
        if exceeds_clock(reported, clock.wall_s, tolerance):
            where = f"{record.experiment_id} trial {trial.planned.index}"
            yield Disagreement(where, "reports more time than passed on the coordinator's clock")
    if record.outcome == "complete" and (growth := unexplained_growth(record.trials, spec)) is not None:
        yield Disagreement(record.experiment_id, growth)


def side_problems(record: ExperimentRecord, spec: RunSpec) -> Iterator[Disagreement]:
    """Yield sides whose files changed while they were measured."""
    for name, side in (("baseline", record.baseline), ("candidate", record.candidate)):
        digests = (side.files_sha256_before, side.files_sha256_after)
        if digests[0] != digests[1] and (None not in digests or record.outcome == "complete"):
            yield Disagreement(record.experiment_id, f"the {name}'s files changed during the experiment")


def time_problems(record: ExperimentRecord, spec: RunSpec) -> Iterator[Disagreement]:
    """Yield moments out of order: trials lie within the experiment, and within its lease."""
    moments = [record.started_utc]
    for trial in record.trials:
        moments += [trial.started_utc, trial.ended_utc]
    moments.append(record.ended_utc)
    if any(later < earlier for earlier, later in pairwise(moments)):
        yield Disagreement(record.experiment_id, "its trials overlap or lie outside the experiment")
    if record.ended_clock is not None and record.ended_clock.utc != record.ended_utc:
        yield differs(
            record.experiment_id, "its end on both clocks", record.ended_clock.utc, record.ended_utc
        )
    if record.trials and record.lease is None:
        yield Disagreement(record.experiment_id, "has trials but held no device")
    if record.lease is not None and not _covers(record.lease, record):
        yield Disagreement(record.experiment_id, "ran outside the interval of its lease")


def device_problems(record: ExperimentRecord, spec: RunSpec) -> Iterator[Disagreement]:
    """Yield readings of other devices than the leased ones, or of a device that did not qualify."""
    leased = record.lease.devices if record.lease is not None else ()
    identities: dict[str, str] = {}
    for when, readings in (("before", record.devices_before), ("after", record.devices_after)):
        devices = tuple(reading.device for reading in readings)
        if devices != leased and (devices or record.outcome == "complete"):
            yield differs(record.experiment_id, f"devices read {when} it", devices, leased)
        for reading in readings:
            if reading.problem is not None and record.outcome == "complete":
                yield Disagreement(record.experiment_id, f"complete, though {reading.device} did not qualify")
            known = identities.setdefault(reading.device, reading.identity)
            if known != reading.identity and reading.problem is None:
                yield differs(record.experiment_id, f"identity of {reading.device}", reading.identity, known)


def look_problems(record: ExperimentRecord, spec: RunSpec) -> Iterator[Disagreement]:
    """Yield looks that the gates do not give, and an end where no look says so."""
    planned = plan_looks(spec.gates, record.purpose)
    if record.look_plan != planned:
        yield differs(record.experiment_id, "look plan", record.look_plan, planned)
    if record.look_plan is None or record.outcome != "complete":
        return
    pairs = {trial.planned.pair for trial in record.trials} - {None}
    looks = decide(record, spec).looks
    stopped = looks[-1].pairs if looks and looks[-1].stop is not None else None
    if stopped != len(pairs):
        yield differs(record.experiment_id, "pairs at which it ended", len(pairs), stopped)


def lease_problems(record: ExperimentRecord, device_sets: Sequence[DeviceSet]) -> Iterator[Disagreement]:
    """Yield a lease of devices that the plan does not have so."""
    if record.lease is None:
        return
    sets = {item.id: item.devices for item in device_sets}
    if sets.get(record.lease.device_set) != record.lease.devices:
        yield Disagreement(
            record.experiment_id, f"leased {record.lease.device_set}, which the plan has otherwise"
        )


PER_RECORD: tuple[RecordCheck, ...] = (
    value_problems,
    count_problems,
    clock_problems,
    confinement_problems,
    end_problems,
    side_problems,
    time_problems,
    device_problems,
    look_problems,
)
"""Checks that take a record and its run specification alone."""


def record_problem(record: ExperimentRecord, spec: RunSpec) -> str | None:
    """Say what an audit would find first in a record, by the record and its run specification alone.

    Args:
        record: The experiment, raw.
        spec: How its trials had to run.
    """
    try:
        for check in (_broke_problems, *PER_RECORD):
            for found in check(record, spec):
                return f"{found.where}: {found.detail}"
        decide(record, spec)  # what no verdict can be taken of must not end whoever would take it
    except (ValueError, LookupError, ArithmeticError) as error:
        return f"{record.experiment_id}: what it holds cannot be reckoned with: {error}"
    return None


def _covers(lease: Lease, record: ExperimentRecord) -> bool:
    ran = record.trials
    return not ran or lease.acquired_utc <= ran[0].started_utc <= ran[-1].ended_utc <= lease.released_utc


def _same(stands: float | None, computed: float | None) -> bool:
    if stands is None or computed is None:
        return stands is computed
    return math.isclose(stands, computed, rel_tol=1e-12, abs_tol=0.0)
