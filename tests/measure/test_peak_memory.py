"""Peak memory of real trials, which nothing limits: as the instrument, as a guard, and beside neither."""

from __future__ import annotations

import re

import pytest
from measure.worlds import LIMITS, METRIC, PAIR, SINGLE, World, make_spec
from support.tools import needs_peak_memory

from roundkit.measure.instruments import instrument_state
from roundkit.models.campaign import Benchmark, GuardMetric, Metric

pytestmark = needs_peak_memory

PEAK = Metric(name="peak", unit="bytes", direction="lower")
HOLDING = "held = bytearray(b'x' * (64 << 20))\ndef work(payload): return 0\n"
UNLIMITED = LIMITS.model_copy(update={"memory_bytes": None})


@pytest.mark.parametrize("shape", [PAIR, SINGLE], ids=["pair", "single"])
def test_m13_peak_memory_decides_without_any_limit(world: World, shape: Benchmark) -> None:
    benchmark = shape.model_copy(update={"instrument": "peak-memory"})
    world.spec = make_spec(benchmark, metric=PEAK, limits=UNLIMITED)
    small, large = world.trial({}), world.trial({"prog/core.py": HOLDING})
    assert small.value is not None, small.detail
    assert large.value is not None, large.detail
    assert small.value == small.resources.peak_memory_bytes
    assert large.value > small.value + (60 << 20)


def test_peak_memory_is_a_guard_without_any_limit(single_world: World) -> None:
    guards = (GuardMetric(name="peak_memory_bytes", direction="lower", limit=0.1),)
    single_world.spec = make_spec(
        SINGLE, metric=METRIC.model_copy(update={"guards": guards}), limits=UNLIMITED
    )
    trial = single_world.trial({})
    assert trial.metrics["peak_memory_bytes"] == (trial.resources.peak_memory_bytes,)


def test_nobody_pays_for_a_peak_that_nothing_asks_for(single_world: World) -> None:
    single_world.spec = make_spec(SINGLE, limits=UNLIMITED)
    assert single_world.trial({}).resources.peak_memory_bytes is None


def test_m13_the_instrument_is_there_under_the_limits_of_the_template() -> None:
    state = instrument_state("peak-memory", UNLIMITED)
    assert (state.name, state.present) == ("peak-memory", True), state.detail
    assert re.fullmatch(r"the cgroup's peak: [1-9]\d* bytes", state.detail)
