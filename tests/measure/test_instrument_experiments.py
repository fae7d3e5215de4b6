"""M13: what instruction counts tell apart in real experiments on a small Python benchmark, and what not."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from measure.counting import LOOPS, MARGIN, bare, counted_total, looping
from measure.worlds import World
from support.tools import needs_valgrind

from roundkit.measure.experiment import run_experiment
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.instruments import INSTRUCTIONS_SAY_NOTHING
from roundkit.models.round_plan import DeviceSet
from roundkit.rules.verdict import decide

pytestmark = needs_valgrind

Run = Callable[..., ExperimentRecord]
CHANGE = 0.002


@pytest.fixture
def small(world: World) -> World:
    """A world whose benchmark is a loop."""
    return bare(world, loops=LOOPS)


@pytest.fixture
def run(small: World, lease_root: Path, fixture_devices: Callable[..., DeviceSet]) -> Run:
    """Run one experiment of six pairs against a candidate."""

    def experiment(code: str, *, name: str = "candidate") -> ExperimentRecord:
        candidate = small.candidate({"prog/core.py": code}, name)
        (candidate / "bench" / "bare.py").write_text((small.incumbent / "bench" / "bare.py").read_text())
        record = run_experiment(small.request(candidate, (fixture_devices("a"),)), lease_root=lease_root)
        assert record.outcome == "complete", record.detail
        return record

    return experiment


def with_other_seeds(record: ExperimentRecord) -> ExperimentRecord:
    """Hold each baseline against a candidate's trial of the next pair, which has another hash seed."""
    values = {
        trial.planned.pair: trial.value
        for trial in record.trials
        if trial.planned.side == "candidate" and trial.planned.pair is not None
    }
    assert len(set(values.values())) > 1  # seeds do move the count

    moved = tuple(
        trial.model_copy(update={"value": values[(trial.planned.pair + 1) % len(values)]})
        if trial.planned.pair is not None and trial.planned.side == "candidate"
        else trial
        for trial in record.trials
    )
    return record.model_copy(update={"trials": moved})


def test_m13_counts_repeat_and_tell_a_fifth_of_a_per_cent_apart(small: World) -> None:
    code = looping(LOOPS)
    once, again = (counted_total(small.trial({"prog/core.py": code})) for _ in range(2))
    assert abs(math.log(once / again)) <= 1e-5, (once, again)
    fewer = counted_total(small.trial({"prog/core.py": looping(round(LOOPS * (1 - CHANGE)))}))
    assert math.log(once / fewer) > MARGIN, (once, fewer)


@pytest.mark.slow
def test_m13_a_docstring_is_no_change(small: World, run: Run) -> None:
    verdict = decide(run(looping(LOOPS, "Add up what is left of every square, and say so.")), small.spec)
    assert verdict.verdict == "not-measured", verdict.sentence


@pytest.mark.slow
def test_m13_another_path_length_and_another_hash_seed_are_no_change(small: World, run: Run) -> None:
    record = run(looping(LOOPS), name="c" * 150)
    for found in (record, with_other_seeds(record)):
        verdict = decide(found, small.spec)
        assert verdict.verdict == "not-measured", verdict.sentence
        assert verdict.forgeable


@pytest.mark.slow
def test_m13_a_fifth_of_a_per_cent_of_a_loop_passes_within_eight_pairs(small: World, run: Run) -> None:
    record = run(looping(round(LOOPS * (1 - CHANGE))))
    verdict = decide(record, small.spec)
    assert (verdict.verdict, verdict.pairs) == ("pass", 6), verdict.sentence
    assert verdict.gain is not None
    assert MARGIN < verdict.gain <= CHANGE
    assert INSTRUCTIONS_SAY_NOTHING in verdict.sentence
    slower = decide(run(looping(round(LOOPS * (1 + CHANGE))), name="slower"), small.spec)
    assert (slower.verdict, slower.reason) == ("fail", "regression"), slower.sentence
