"""What each instrument costs a trial, and what it makes of a small change of a Python loop."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from bench.result import Figure, environment, ratio_interval
from measure.counting import BARE, bare, counted_spec, looping
from measure.worlds import World, make_spec
from support.synthetic import reachable_folder

from roundkit.measure.experiment import run_experiment
from roundkit.measure.instruments import instrument_state
from roundkit.models.campaign import Metric
from roundkit.models.instruments import UNITS, Instrument
from roundkit.models.round_plan import DeviceSet
from roundkit.models.run_spec import RunSpec
from roundkit.rules.verdict import decide

CHANGE = 0.002
LINE = 0.0005
OVER_WALL: tuple[Instrument, ...] = ("cpu", "peak-memory", "instructions")


def measure(tiny: bool) -> Iterator[Figure]:
    """Yield each instrument's overhead, and what a wall clock and counts make of the same change."""
    loops, rounds, pairs = (20_000, 3, 6) if tiny else (500_000, 9, 40)
    with reachable_folder() as home:
        yield from _overheads(_world(home / "overhead", loops), loops, rounds)
        yield _found(_world(home / "wall", loops), "wall", loops, pairs)
        yield _found(_world(home / "counted", loops), "instructions", loops, 6)


def _world(root: Path, loops: int) -> World:
    root.mkdir(mode=0o711)
    return bare(World(root), loops=loops)


def _spec(instrument: Instrument) -> RunSpec:
    """Return how a trial of the small benchmark runs under an instrument that this machine has."""
    if instrument == "instructions":
        spec = counted_spec(BARE)
        tool = instrument_state(instrument, spec.limits).tool
        return spec.model_copy(update={"counting_tool": tool})
    metric = Metric(name="figure", unit=UNITS.get(instrument, "ms"), direction="lower")
    spec = make_spec(BARE.model_copy(update={"instrument": instrument, "timeout_s": 300}), metric=metric)
    return spec.model_copy(
        update={"gates": spec.gates.model_copy(update={"min_gain": LINE, "loss_margin": LINE})}
    )


def _overheads(world: World, loops: int, rounds: int) -> Iterator[Figure]:
    """Compare trials in turns; a wall clock is outside and costs nothing."""
    took: dict[Instrument, list[float]] = {name: [] for name in ("wall", *OVER_WALL)}
    specs = {name: _spec(name) for name in took}
    for _ in range(rounds):
        for name, spec in specs.items():
            world.spec = spec
            trial = world.trial({"prog/core.py": looping(loops)})
            assert trial.problem is None, trial.detail
            assert trial.resources.wall_s is not None
            took[name].append(trial.resources.wall_s)
    for name in OVER_WALL:
        ratio, low, high = ratio_interval(took[name], took["wall"])
        by = f" ({specs[name].counting_tool})" if name == "instructions" else ""
        yield Figure(
            name, f"a trial under `{name}`{by}, over one without", ratio, "x",
            detail={"interval": (low, high), "rounds": rounds, "loops": loops, "wall_s": took[name]},
        )  # fmt: skip


def _found(world: World, instrument: Instrument, loops: int, pairs: int) -> Figure:
    """Run one experiment on a loop with a fifth of a per cent less to do."""
    world.spec = _spec(instrument)
    candidate = world.candidate({"prog/core.py": looping(round(loops * (1 - CHANGE)))})
    devices = world.root / "devices"
    devices.mkdir()
    (devices / "a.json").write_text("{}")
    (world.root / "leases").mkdir()
    with environment({"ROUNDKIT_FIXTURE_DEVICES": str(devices)}):
        cores = DeviceSet(id="a", platform="fixture", devices=("a",))
        record = run_experiment(
            world.request(candidate, (cores,), pairs=pairs), lease_root=world.root / "leases"
        )
    assert record.outcome == "complete", record.detail
    verdict = decide(record, world.spec)
    assert verdict.gain is not None
    return Figure(
        f"change by {instrument}",
        f"a change of {CHANGE:.1%} in a loop, by `{instrument}` in {verdict.pairs} pairs:"
        f" {verdict.verdict}; estimate beside it",
        100 * verdict.gain, "%",
        detail={
            **({} if verdict.low is None or verdict.high is None else {
                "interval": (100 * verdict.low, 100 * verdict.high)}),
            "verdict": verdict.verdict, "reason": verdict.reason, "z": verdict.z, "loops": loops,
            "smallest_detectable_gain": verdict.smallest_detectable_gain, "load": os.getloadavg(),
        },
    )  # fmt: skip
