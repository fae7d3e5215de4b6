"""What the coordinator itself reads of a trial, and reported times held against its clock.

Two checks of reported times, both with the plan's ``clock_tolerance``. In one trial, the times reported for
its repetitions cannot add up to more than the trial took. Over the pairs of a single-process benchmark, a
candidate that reports less time must also end sooner: what the coordinator saw pass and the candidate did
not report may not have grown by more than the tolerance, with the evidence that the plan asks of any
verdict. The tolerance is one of the longer of both trials: what a busy machine adds to an honestly slower
candidate's is not held against it. A benchmark whose driver holds the clock needs no such check, and work
moved from the timed part into start-up is found by it as well as a forged time is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from roundkit.core.clock import MS_IN_S
from roundkit.host.confine import Execution
from roundkit.models.instruments import InstructionCount, Instrument
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import ConfinedRun, Role, Side, Trial, TrialResources
from roundkit.stats.tails import t_to_z

LARGEST_FIGURE = 1e30
"""Largest size of a reported number; medians, sums and ratios of such numbers stay finite."""

SMALLEST_FIGURE = 1e-30
"""Smallest number that the deciding metric may have, so that a ratio of two stays finite."""

PEAK_MEMORY_METRIC = "peak_memory_bytes"
"""Name under which a guard asks for the coordinator's own reading of the peak."""


def own_reading(
    instrument: Instrument, resources: TrialResources, counted: InstructionCount | None = None
) -> float | None:
    """Return the coordinator's own reading of a trial, in the unit of the instrument's metric.

    Args:
        instrument: Which; the benchmark's own metric is not the coordinator's to read.
        resources: What clocks and counters say of the trial.
        counted: The instructions, where they were counted.

    Returns:
        The reading; None where there is none.
    """
    match instrument:
        case "wall" | "cpu":
            seconds = resources.wall_s if instrument == "wall" else resources.cpu_s
            return None if seconds is None else seconds * MS_IN_S
        case "instructions":
            return None if counted is None else float(counted.total)
        case "peak-memory":
            peak = resources.peak_memory_bytes
            return None if peak is None else float(peak)
        case "reported":
            return None


def counts_every_child(run: Execution | ConfinedRun) -> bool:
    """Say whether a run's CPU time has every child's in it.

    procfs leaves out those that nobody waited for: whoever ignores the end of its children hides their work.
    """
    return run.cpu_source == "cgroup"


def reading_beside(instrument: Instrument, trial: Trial) -> float | None:
    """Return the coordinator's own reading of a trial that another instrument decided.

    Args:
        instrument: Which.
        trial: The trial.

    Returns:
        The reading; None where there is none, or where the instrument could not decide here.
    """
    run = trial.executions.get("worker", trial.executions.get("benchmark"))
    if instrument == "cpu" and run is not None and not counts_every_child(run):
        return None
    return own_reading(instrument, trial.resources)


def own_metrics(
    spec: RunSpec, resources: TrialResources, counted: InstructionCount | None
) -> Mapping[str, float | None]:
    """Return every metric of a trial that is the coordinator's own; null where it has no reading."""
    instrument = spec.benchmark.instrument
    own: dict[str, float | None] = {}
    if instrument != "reported":
        own[spec.metric.name] = own_reading(instrument, resources, counted)
    if any(guard.name == PEAK_MEMORY_METRIC for guard in spec.metric.guards):
        own[PEAK_MEMORY_METRIC] = own_reading("peak-memory", resources)
    return own


def reads_peak_memory(spec: RunSpec) -> bool:
    """Say whether instrument or guard asks for the peak, which takes a control group of its own."""
    guarded = any(guard.name == PEAK_MEMORY_METRIC for guard in spec.metric.guards)
    return guarded or spec.benchmark.instrument == "peak-memory"


def candidate_role(spec: RunSpec) -> Role:
    """Return the process of a trial that runs the candidate: the one that is read and counted."""
    return "benchmark" if spec.benchmark.single_process else "worker"


def clock_role(spec: RunSpec) -> Role:
    """Return the process of a trial whose reported times are held against the coordinator's clock."""
    return "benchmark" if spec.benchmark.single_process else "driver"


def exceeds_clock(reported_ms: Sequence[float], wall_s: float, tolerance: float) -> bool:
    """Say whether reported times add up to more than passed on the coordinator's clock."""
    return math.fsum(reported_ms) > wall_s * MS_IN_S * (1.0 + tolerance)


def unexplained_growth(trials: Iterable[Trial], spec: RunSpec) -> str | None:
    """Say in what way a candidate's reported times and the coordinator's clock disagree over all pairs.

    For each pair, the time that passed without being reported is compared between the sides, as a fraction
    of the wall time of the longer trial. Whoever does not report less has hidden nothing: on a machine whose
    wall clock is noisy the growth alone would blame one honest candidate in some forty.

    Args:
        trials: Valid trials of one experiment.
        spec: How they ran.

    Returns:
        One sentence, or None where nothing is wrong or nothing can be said: a driver holds the clock, the
        metric is no time, or there are fewer than two pairs.
    """
    tolerance = spec.benchmark.clock_tolerance
    if tolerance is None or not spec.benchmark.single_process or spec.benchmark.instrument != "reported":
        return None
    pairs: dict[int, dict[Side, _Clocked]] = {}
    for trial in trials:
        wall_s = trial.resources.wall_s
        if trial.planned.pair is not None and wall_s is not None and trial.problem is None:
            reported_ms = math.fsum(trial.metrics[spec.metric.name])
            clocked = _Clocked(wall_ms=wall_s * MS_IN_S, reported_ms=reported_ms)
            pairs.setdefault(trial.planned.pair, {})[trial.planned.side] = clocked
    whole = [(sides["baseline"], sides["candidate"]) for sides in pairs.values() if len(sides) == 2]
    if len(whole) < 2:
        return None
    savings = [_saving(*sides) for sides in whole]
    growths = [_growth(*sides) for sides in whole]
    mean = statistics.fmean(growths)
    if min(_evidence(savings, 0.0), _evidence(growths, tolerance)) < spec.gates.sigma_min:
        return None
    return (
        f"the candidate's unreported time grew by {mean:.0%} of a trial, more than the {tolerance:.0%}"
        " allowed: it reports less time, but does not end sooner"
    )


def ended_well(run: Execution | ConfinedRun) -> bool:
    """Say whether a process ended by itself with exit code 0, as each process of a valid trial does."""
    return run.end_reason == "exited" and run.exit_code == 0 and run.signal is None


def trial_roles(spec: RunSpec) -> tuple[Role, ...]:
    """Return the processes of a trial that came to its end, in the order in which they are recorded."""
    runs: tuple[Role, ...] = ("benchmark",) if spec.benchmark.single_process else ("driver", "worker")
    return runs if spec.validator is None else (*runs, "validator")


def figure_problem(name: str, values: Sequence[float], *, decides: bool) -> str | None:
    """Say why the reported values of a metric cannot be reckoned with; None where they can.

    Args:
        name: The metric's name.
        values: Its repetitions, at least one.
        decides: Whether it is the deciding metric; if not, a guard.
    """
    least, most = min(values), max(values)
    if decides and least <= 0:
        return f"metric {name} is {least!r}; it must be above zero"
    if decides and least < SMALLEST_FIGURE:
        return f"metric {name} is {least!r}; the least that is reckoned with is {SMALLEST_FIGURE!r}"
    if least < 0:
        return f"metric {name} is {least!r}; it cannot be below zero"
    if most > LARGEST_FIGURE:
        return f"metric {name} is {most!r}; the most that is reckoned with is {LARGEST_FIGURE!r}"
    return None


@dataclass(frozen=True)
class _Clocked:
    """One trial's time by the coordinator's clock, and what was reported of it."""

    wall_ms: float
    reported_ms: float

    @property
    def unreported_ms(self) -> float:
        return self.wall_ms - self.reported_ms


def _saving(baseline: _Clocked, candidate: _Clocked) -> float:
    """Return by how much reported time shrank in a pair, as a fraction of the longer trial."""
    return (baseline.reported_ms - candidate.reported_ms) / max(baseline.wall_ms, candidate.wall_ms)


def _growth(baseline: _Clocked, candidate: _Clocked) -> float:
    """Return by how much unreported time grew in a pair, as a fraction of the longer trial."""
    longer_ms = max(baseline.wall_ms, candidate.wall_ms)
    return (candidate.unreported_ms - baseline.unreported_ms) / longer_ms


def _evidence(changes: Sequence[float], tolerance: float) -> float:
    """Return the evidence that the mean change is beyond a tolerance, as a normal deviate (t, n − 1).

    Changes that are all alike leave no doubt, unless they are the tolerance itself: nothing is beyond it.
    """
    beyond = statistics.fmean(changes) - tolerance
    standard_error = statistics.stdev(changes) / math.sqrt(len(changes))
    if standard_error == 0.0:
        return math.copysign(math.inf, beyond) if beyond else 0.0
    return float(t_to_z(beyond / standard_error, len(changes) - 1))
