"""Experiments: schedule and seeds, medians, both sides' identity, times, and who held which device."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.material import Material
from roundkit.core.canonical import digest_json
from roundkit.measure.clocks import exceeds_clock, unexplained_growth
from roundkit.models.measurement import ExperimentRecord, Lease, Role, Trial
from roundkit.rules.identity import experiment_name
from roundkit.rules.schedule import plan_schedule

_MS_IN_S = 1000.0


def check_experiments(material: Material) -> list[Check]:
    """Check every experiment against the plan, the secret, its raw samples and the clock."""
    records = list(material.experiments.values())
    trials = sum(len(record.trials) for record in records)
    return [
        *conclude(
            "experiments", _identity_problems(material), f"{len(records)} experiments under one run spec"
        ),
        *conclude(
            "schedule", _schedule_problems(material), "coins and seeds follow from the revealed secret"
        ),
        *conclude("medians", _median_problems(material), f"{trials} trials, from raw repetitions"),
        *conclude("counts", _count_problems(material), "instructions add up, process by process"),
        *conclude("clocks", _clock_problems(material), "reported times agree with the coordinator's clock"),
        *conclude("confinement", _confinement_problems(material), "every run within a boundary on record"),
        *conclude("sides", _side_problems(material), "files unchanged during every experiment"),
        *conclude(
            "times", _time_problems(material), "trials lie within experiments, experiments within leases"
        ),
        *conclude("leases", _lease_problems(material), "no device had two holders at a time"),
    ]


def _identity_problems(material: Material) -> Iterator[Disagreement]:
    spec_digest = material.spec.digest()
    for record in material.experiments.values():
        for what, stands, computed in (
            ("experiment_id", record.experiment_id, experiment_name(record.subject, record.attempt)),
            ("round_id", record.round_id, material.plan.round_id),
            ("run_spec_sha256", record.run_spec_sha256, spec_digest),
        ):
            if stands != computed:
                yield differs(record.experiment_id, what, stands, computed)
        if (record.outcome == "complete") != (record.reason is None):
            yield Disagreement(record.experiment_id, "outcome and reason do not go together")
        problems = [trial.problem for trial in record.trials if trial.problem is not None]
        if record.outcome == "complete" and problems:
            yield Disagreement(
                record.experiment_id, f"complete, though a trial has the problem {problems[0]}"
            )


def _schedule_problems(material: Material) -> Iterator[Disagreement]:
    digest, pairs = material.plan.digest(), material.plan.gates.ab_ba_pairs
    for record in material.experiments.values():
        planned = plan_schedule(material.secret, digest, record.experiment_id, pairs)
        ran = tuple(trial.planned for trial in record.trials)
        if ran != planned[: len(ran)]:
            at = next(
                number for number, row in enumerate(ran) if number >= len(planned) or row != planned[number]
            )
            yield Disagreement(record.experiment_id, f"trial {at} is not the one that the secret gives")
        elif record.outcome == "complete" and record.look_plan is None and len(ran) != len(planned):
            yield differs(record.experiment_id, "number of trials", len(ran), len(planned))


def _median_problems(material: Material) -> Iterator[Disagreement]:
    for record in material.experiments.values():
        for trial in record.trials:
            if trial.problem is not None and trial.value is None:
                continue
            where = f"{record.experiment_id} trial {trial.planned.index}"
            samples = trial.metrics.get(material.spec.metric.name, ())
            computed = float(median(samples)) if samples else None
            if not _same(trial.value, computed):
                yield differs(where, "value", trial.value, computed)
            elif (own := _own_reading(trial, material)) is not None and not _same(trial.value, own):
                yield differs(where, "value", trial.value, own)


def _own_reading(trial: Trial, material: Material) -> float | None:
    """Return the coordinator's own reading in the metric's unit, where that is what decides."""
    resources, instrument = trial.resources, material.spec.benchmark.instrument
    if instrument == "instructions":
        return None if trial.counted is None else float(trial.counted.total)
    if instrument == "peak-memory":
        return None if resources.peak_memory_bytes is None else float(resources.peak_memory_bytes)
    read = {"wall": resources.wall_s, "cpu": resources.cpu_s}
    seconds = read.get(instrument)
    return None if seconds is None else seconds * _MS_IN_S


def _count_problems(material: Material) -> Iterator[Disagreement]:
    """Hold every count against the round's tool, and its total against its processes."""
    tool, instrument = material.spec.counting_tool, material.spec.benchmark.instrument
    if (tool is None) != (instrument != "instructions"):
        yield Disagreement("run-spec.json", f"the instrument {instrument} with the counting tool {tool}")
    for record in material.experiments.values():
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


def _clock_problems(material: Material) -> Iterator[Disagreement]:
    spec = material.spec
    tolerance = spec.benchmark.clock_tolerance
    role: Role = "benchmark" if spec.benchmark.single_process else "driver"
    if tolerance is None or spec.benchmark.instrument != "reported":
        return
    for record in material.experiments.values():
        for trial in record.trials:
            clock = trial.executions.get(role)
            reported = trial.metrics.get(spec.metric.name, ())
            if trial.problem is not None or clock is None or clock.wall_s is None:
                continue
            if exceeds_clock(reported, clock.wall_s, tolerance):
                where = f"{record.experiment_id} trial {trial.planned.index}"
                yield Disagreement(where, "reports more time than passed on the coordinator's clock")
        if record.outcome == "complete" and (growth := unexplained_growth(record.trials, spec)) is not None:
            yield Disagreement(record.experiment_id, growth)


def _confinement_problems(material: Material) -> Iterator[Disagreement]:
    for record in material.experiments.values():
        for digest, boundary in record.boundaries.items():
            if digest_json(boundary.model_dump(mode="json")) != digest:
                yield Disagreement(record.experiment_id, f"the boundary {digest} is another one")
            if boundary.network != "none":
                yield Disagreement(record.experiment_id, f"a trial had the {boundary.network} network")
        for trial in record.trials:
            for role, run in trial.executions.items():
                if run.boundary not in record.boundaries:
                    where = f"{record.experiment_id} trial {trial.planned.index}"
                    yield Disagreement(where, f"no boundary is on record for its {role}")


def _side_problems(material: Material) -> Iterator[Disagreement]:
    built: dict[str, str] = {}
    for record in material.experiments.values():
        for name, side in (("baseline", record.baseline), ("candidate", record.candidate)):
            digests = (side.files_sha256_before, side.files_sha256_after)
            if digests[0] != digests[1] and (None not in digests or record.outcome == "complete"):
                yield Disagreement(record.experiment_id, f"the {name}'s files changed during the experiment")
            tree = built.setdefault(side.commit, side.tree)
            if tree != side.tree:
                yield differs(record.experiment_id, f"tree of {side.commit}", side.tree, tree)
    if built.get(material.plan.incumbent, material.plan.incumbent_tree) != material.plan.incumbent_tree:
        yield differs(
            "round-plan.json", "incumbent_tree", material.plan.incumbent_tree, built[material.plan.incumbent]
        )


def _time_problems(material: Material) -> Iterator[Disagreement]:
    for record in material.experiments.values():
        moments = [record.started_utc]
        for trial in record.trials:
            moments += [trial.started_utc, trial.ended_utc]
        moments.append(record.ended_utc)
        if any(later < earlier for earlier, later in pairwise(moments)):
            yield Disagreement(record.experiment_id, "its trials overlap or lie outside the experiment")
        if record.trials and record.lease is None:
            yield Disagreement(record.experiment_id, "has trials but held no device")
        if record.lease is not None and not _covers(record.lease, record):
            yield Disagreement(record.experiment_id, "ran outside the interval of its lease")


def _covers(lease: Lease, record: ExperimentRecord) -> bool:
    ran = record.trials
    return not ran or lease.acquired_utc <= ran[0].started_utc <= ran[-1].ended_utc <= lease.released_utc


def _lease_problems(material: Material) -> Iterator[Disagreement]:
    sets = {item.id: item.devices for item in material.plan.device_sets}
    held: dict[str, list[tuple[Lease, str]]] = {}
    for record in material.experiments.values():
        if record.lease is None:
            continue
        if sets.get(record.lease.device_set) != record.lease.devices:
            yield Disagreement(
                record.experiment_id, f"leased {record.lease.device_set}, which the plan has otherwise"
            )
        for device in record.lease.devices:
            held.setdefault(device, []).append((record.lease, record.experiment_id))
    for device, leases in sorted(held.items()):
        ordered = sorted(leases, key=lambda row: (row[0].acquired_utc, row[0].released_utc))
        for (first, one), (second, other) in pairwise(ordered):
            if second.acquired_utc < first.released_utc:
                yield Disagreement(f"device {device}", f"{one} and {other} held it at the same time")


def _same(stands: float | None, computed: float | None) -> bool:
    if stands is None or computed is None:
        return stands is computed
    return math.isclose(stands, computed, rel_tol=1e-12, abs_tol=0.0)
