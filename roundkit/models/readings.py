"""What the coordinator itself reads of a trial, and reported times held against its clock.

Two checks of reported times, both with the plan's ``clock_tolerance``. In one trial, the times reported for
its repetitions cannot add up to more than the trial took. Over the pairs of a single-process benchmark, a
candidate that reports less time must also end sooner: what the coordinator saw pass and the candidate did
not report may not have grown by more than the tolerance, with the evidence that the plan asks of any
verdict. A benchmark whose driver holds the clock needs no such check, and work moved from the timed part
into start-up is found by it as well as a forged time is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from roundkit.core.clock import MS_IN_S
from roundkit.models.instruments import InstructionCount, Instrument
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import Role, Trial, TrialResources
from roundkit.stats.tails import t_to_z

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
    of the baseline's wall time.

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
    pairs: dict[int, dict[str, tuple[float, float]]] = {}
    for trial in trials:
        wall_s = trial.resources.wall_s
        if trial.planned.pair is not None and wall_s is not None and trial.problem is None:
            reported_ms = math.fsum(trial.metrics[spec.metric.name])
            wall_ms = wall_s * MS_IN_S
            pairs.setdefault(trial.planned.pair, {})[trial.planned.side] = (wall_ms - reported_ms, wall_ms)
    growths = [
        (sides["candidate"][0] - sides["baseline"][0]) / sides["baseline"][1]
        for sides in pairs.values()
        if len(sides) == 2
    ]
    if len(growths) < 2:
        return None
    mean = statistics.fmean(growths)
    if _evidence(growths, tolerance) < spec.gates.sigma_min:
        return None
    return (
        f"the candidate's unreported time grew by {mean:.0%} of a trial, more than the {tolerance:.0%}"
        " allowed: it reports less time, but does not end sooner"
    )


def _evidence(growths: Sequence[float], tolerance: float) -> float:
    """Return the evidence that the mean growth is beyond the tolerance, as a normal deviate (t, n − 1)."""
    beyond = statistics.fmean(growths) - tolerance
    standard_error = statistics.stdev(growths) / math.sqrt(len(growths))
    if standard_error == 0.0:
        return math.copysign(math.inf, beyond)
    return float(t_to_z(beyond / standard_error, len(growths) - 1))
