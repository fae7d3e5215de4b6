"""A small Python benchmark whose instructions are counted, and changes of it that matter more or less."""

from __future__ import annotations

from measure.worlds import PAIR, SINGLE, World, make_spec

from roundkit.models.campaign import Benchmark, Metric
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import Trial

COUNTED = Metric(name="count", unit="instructions", direction="lower")
LOOPS = 200_000
MARGIN = 0.0005
"""Below the change that is sought, above what a docstring (5e-5) or a path's length (1e-4) moves."""

# Imports next to nothing: an interpreter's start is most of what is counted, and of what a test waits for.
# Not `-I`: that ignores PYTHONHASHSEED, so that no two counts are alike.
BARE = SINGLE.model_copy(update={"argv": ("{python}", "-s", "-P", "-S", "bench/bare.py")})
_BENCHMARK = "import os, sys\nsys.path.append(os.getcwd())\nfrom prog.core import work\nwork({'n': 1000})\n"


def counted_spec(benchmark: Benchmark = PAIR) -> RunSpec:
    """How trials run when valgrind counts them."""
    instrument = benchmark.model_copy(update={"instrument": "instructions", "timeout_s": 300})
    spec = make_spec(instrument, metric=COUNTED)
    gates = spec.gates.model_copy(update={"min_gain": MARGIN, "loss_margin": MARGIN})
    return spec.model_copy(update={"counting_tool": "valgrind", "gates": gates})


def bare(world: World, *, loops: int | None = None) -> World:
    """Let a world's benchmark be one process that does little else than the candidate's work, counted."""
    (world.incumbent / "bench" / "bare.py").write_text(_BENCHMARK)
    if loops is not None:
        (world.incumbent / "prog" / "core.py").write_text(looping(loops))
    world.spec = counted_spec(BARE)
    return world


def looping(loops: int, docstring: str = "Add up.") -> str:
    """Return a candidate whose work is so many iterations of a loop."""
    return (
        f'def work(payload):\n    """{docstring}"""\n    total = 0\n'
        f"    for n in range({loops}):\n        total += n * n % 7\n    return total\n"
    )


def counted_total(trial: Trial) -> int:
    """Return a valid trial's count, which adds up."""
    assert trial.problem is None, trial.detail
    assert trial.counted is not None
    assert trial.value == trial.counted.total == sum(item.instructions for item in trial.counted.processes)
    return trial.counted.total
