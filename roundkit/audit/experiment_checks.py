"""Experiments: schedule and seeds, medians, both sides' identity, times, and who held which device."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.material import Material
from roundkit.core.text import counted
from roundkit.models.experiment import Lease
from roundkit.rules import record_checks
from roundkit.rules.device_checks import limit_problems
from roundkit.rules.process_checks import confinement_problems, end_problems
from roundkit.rules.record_checks import RecordCheck


def check_experiments(material: Material) -> list[Check]:
    """Check every experiment against the plan, the secret, its raw samples and the clock."""
    records = list(material.experiments.values())
    trials = sum(len(record.trials) for record in records)
    return [
        *conclude(
            "experiments",
            _identity_problems(material),
            f"{counted(len(records), 'experiment')} under one run spec",
        ),
        *conclude(
            "schedule", _schedule_problems(material), "coins and seeds follow from the revealed secret"
        ),
        *conclude(
            "medians",
            _each(material, record_checks.value_problems),
            f"{counted(trials, 'trial')}, from raw repetitions",
        ),
        *conclude("counts", _count_problems(material), _counted(material)),
        *conclude(
            "clocks",
            _each(material, record_checks.clock_problems),
            "reported times agree with the coordinator's clock",
        ),
        *conclude(
            "confinement",
            _each(material, confinement_problems),
            "every run within a boundary on record",
        ),
        *conclude("ends", _each(material, end_problems), "every process ended as its trial says"),
        *conclude("sides", _side_problems(material), "files unchanged during every experiment"),
        *conclude(
            "times",
            _each(material, record_checks.time_problems),
            "trials lie within experiments, experiments within leases",
        ),
        *conclude(
            "devices",
            _device_problems(material),
            "readings are of the leased devices, which qualified",
        ),
        *conclude("leases", _lease_problems(material), "no device had two holders at a time"),
    ]


def _each(material: Material, check: RecordCheck) -> Iterator[Disagreement]:
    for record in material.experiments.values():
        yield from check(record, material.spec)


def _identity_problems(material: Material) -> Iterator[Disagreement]:
    for record in material.experiments.values():
        yield from record_checks.identity_problems(record, material.spec, material.plan.round_id)


def _schedule_problems(material: Material) -> Iterator[Disagreement]:
    for record in material.experiments.values():
        yield from record_checks.schedule_problems(record, material.spec, material.secret)


def _counted(material: Material) -> str:
    if material.spec.counting_tool is None:
        return f"nothing is counted: {material.spec.benchmark.instrument} decides"
    return "instructions add up, process by process"


def _count_problems(material: Material) -> Iterator[Disagreement]:
    tool, instrument = material.spec.counting_tool, material.spec.benchmark.instrument
    if (tool is None) != (instrument != "instructions"):
        yield Disagreement("run-spec.json", f"the instrument {instrument} with the counting tool {tool}")
    yield from _each(material, record_checks.count_problems)


def _side_problems(material: Material) -> Iterator[Disagreement]:
    yield from _each(material, record_checks.side_problems)
    built: dict[str, str] = {}
    for record in material.experiments.values():
        for side in (record.baseline, record.candidate):
            tree = built.setdefault(side.commit, side.tree)
            if tree != side.tree:
                yield differs(record.experiment_id, f"tree of {side.commit}", side.tree, tree)
    if built.get(material.plan.incumbent, material.plan.incumbent_tree) != material.plan.incumbent_tree:
        yield differs(
            "round-plan.json", "incumbent_tree", material.plan.incumbent_tree, built[material.plan.incumbent]
        )


def _device_problems(material: Material) -> Iterator[Disagreement]:
    yield from _each(material, record_checks.device_problems)
    machines: dict[str, str] = {}
    for record in material.experiments.values():
        yield from limit_problems(record, material.plan.device_sets)
        known = machines.setdefault(record.machine_sha256 or "", record.machine)
        if known != record.machine:
            yield differs(record.experiment_id, "machine", record.machine, known)


def _lease_problems(material: Material) -> Iterator[Disagreement]:
    held: dict[tuple[str, str, str], list[tuple[Lease, str]]] = {}
    plan_sets = {item.id: item for item in material.plan.device_sets}
    for record in material.experiments.values():
        yield from record_checks.lease_problems(record, material.plan.device_sets)
        lease = record.lease
        if lease is None or lease.device_set not in plan_sets:
            continue
        known = plan_sets[lease.device_set]
        # On another machine the same name is another device.
        machine = known.machine or record.machine_sha256 or ""
        for device in lease.devices:
            held.setdefault((device, known.platform, machine), []).append((lease, record.experiment_id))
    for (device, _, _), leases in sorted(held.items()):
        ordered = sorted(leases, key=lambda row: (row[0].acquired_utc, row[0].released_utc))
        for (first, one), (second, other) in pairwise(ordered):
            if second.acquired_utc < first.released_utc:
                yield Disagreement(f"device {device}", f"{one} and {other} held it at the same time")
