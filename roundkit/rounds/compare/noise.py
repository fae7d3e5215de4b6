"""``roundkit noise``: a benchmark against itself, under each instrument that the machine has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from roundkit.core.errors import Refused, RoundkitError, refuse
from roundkit.core.progress import SILENT, Progress
from roundkit.host.lease import default_lease_root
from roundkit.measure.pool import LocalPool
from roundkit.models.comparison import InstrumentNoise, NoiseReport
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.instruments import Instrument
from roundkit.models.measurement import SideRef
from roundkit.models.readings import reading_beside
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import Trial
from roundkit.rounds.compare.bench import CompareBench, open_bench, with_instrument
from roundkit.rounds.compare.instruments import BESIDE, METRICS, instruments
from roundkit.rounds.compare.measure import (
    AT_ONCE,
    STOPPING,
    Runner,
    build,
    environment,
    request_for,
)
from roundkit.rounds.compare.options import CompareOptions
from roundkit.rounds.compare.sides import locate
from roundkit.rounds.compare.workplace import workplace
from roundkit.rounds.stopping import stop_on_signal
from roundkit.rounds.template_files import template
from roundkit.rounds.watched_pool import WatchedPool
from roundkit.rules.comparison import limit_hint
from roundkit.rules.noise import gates_in_words, instrument_noise, noise_block, unread
from roundkit.rules.quieter import quieter_clock
from roundkit.stats.verdict import MIN_PAIRS


@dataclass(frozen=True)
class _Run:
    """One A/A experiment, and what decides in it."""

    instrument: Instrument
    spec: RunSpec
    record: ExperimentRecord


def measure_noise(path: str, options: CompareOptions, *, progress: Progress = SILENT) -> NoiseReport:
    """Measure a checkout against itself and say how much of a difference that shows.

    The benchmark's own metric and the coordinator's clocks come from the same trials. An instrument that
    changes how a trial runs has an experiment of its own; one that this machine lacks has no figures.

    Args:
        path: The checkout, a folder or ``REPO@REV``.
        options: What is measured; the campaign's block is for its instrument.
        progress: Shows each step and the trials.

    Raises:
        Refused: as :func:`roundkit.rounds.compare.measure.compare`.
        RoundkitError: it does not build, a trial breaks, or it was stopped by hand.
    """
    side = locate(path, "PATH")
    with stop_on_signal(first=STOPPING, at_once=AT_ONCE) as stop, workplace() as work:
        bench = open_bench(side, side, options, work, name="noise")
        pool = LocalPool(bench.plan.device_sets, lease_root=default_lease_root())
        before = environment(pool, bench.plan.device_sets)
        try:
            runs, missing = _runs(bench, options, Runner(WatchedPool(pool, progress), stop, progress))
        finally:
            pool.close()
    found = _figures(runs, missing, options)
    costing = next((run for run in runs if run.instrument == options.instrument), runs[0])
    trial_s = median(trial.resources.wall_s or 0.0 for trial in costing.record.trials)
    chosen = next(row for row in found if row.instrument == options.instrument)
    return NoiseReport(
        format="roundkit-noise/1",
        plan=bench.plan,
        instruments=found,
        trial_s=trial_s,
        noise=noise_block(
            chosen, machine=before.machine, date=f"{bench.plan.planned_utc:%Y-%m-%d}", trial_s=trial_s
        ),
        run_specs=tuple(run.spec for run in runs),
        experiments=tuple(run.record for run in runs),
        secret=bench.secret.hex(),
        environment=before,
    )


def noise_words(report: NoiseReport) -> tuple[str, ...]:
    """Return the gates that each instrument's noise would bear, a sentence each; last of a quieter clock."""
    min_gain = float(template("campaign.yaml")["test_plan"]["min_gain"])
    quieter = quieter_clock(report.instruments, report.plan.benchmark.instrument, min_gain=min_gain)
    gates = tuple(gates_in_words(row, min_gain) for row in report.instruments)
    return gates if quieter is None else (*gates, *quieter.words())


def _runs(
    bench: CompareBench, options: CompareOptions, runner: Runner
) -> tuple[list[_Run], dict[Instrument, str]]:
    """Run the trials that most instruments share, then those that need trials of their own.

    Returns:
        The experiments, the shared one first, and why there is none of an instrument.
    """
    first, second = (
        build(bench, "baseline", runner, "checkout"),
        build(bench, "candidate", runner, "second copy"),
    )
    if first.side is None or second.side is None:
        raise RoundkitError(f"a second build of the same files fails at {second.cause}:\n{second.detail}")
    sides = (first.side, second.side)
    alone = [name for name in instruments() if name not in BESIDE and name != "reported"]
    shared = "wall" if options.instrument in alone else options.instrument
    runs = [_run(bench if shared == options.instrument else with_instrument(bench, shared), sides, runner)]
    record = runs[0].record
    if record.outcome != "complete":
        help_of = limit_hint(bench.spec, record.reason)
        said = f"the benchmark cannot be measured: {record.reason}: {record.detail}"
        raise RoundkitError(said if help_of is None else f"{said}\n{help_of}")
    missing: dict[Instrument, str] = {}
    for name in alone:
        try:
            runs.append(_run(_alone(bench, options, name), sides, runner))
        except Refused as refused:
            first_one = refused.refusals[0]
            missing[name] = f"{first_one.message} ({first_one.remedy})"
    return runs, missing


def _alone(bench: CompareBench, options: CompareOptions, instrument: Instrument) -> CompareBench:
    """Return the bench of an instrument that needs trials of its own.

    Raises:
        Refused: ``left-out``, or ``instrument-missing``.
    """
    if instrument == options.instrument:
        return bench
    if options.shared_only:
        raise refuse("left-out", "left out", place="--quick", remedy="it needs trials of its own")
    # Counts and peaks repeat, and counting may slow a trial many times over: few pairs tell as much.
    return with_instrument(bench, instrument, pairs=MIN_PAIRS)


def _run(bench: CompareBench, sides: tuple[SideRef, SideRef], runner: Runner) -> _Run:
    instrument = bench.spec.benchmark.instrument
    runner.progress.say(f"{bench.spec.gates.ab_ba_pairs} pairs of the same under `{instrument}`")
    subject = f"noise-{instrument}"
    request = request_for(bench, bench.spec, *sides, purpose="aa", subject=subject, attempt=1)
    return _Run(instrument, bench.spec, runner.run(request))


def _figures(
    runs: Sequence[_Run], missing: Mapping[Instrument, str], options: CompareOptions
) -> tuple[InstrumentNoise, ...]:
    """Return the noise under every instrument, in the order in which they are declared."""
    by_name = {run.instrument: run for run in runs}
    planned = options.planned_pairs or int(template("campaign.yaml")["test_plan"]["ab_ba_pairs"])
    found = []
    for name in instruments():
        if name == "reported" and name not in by_name:
            continue  # no metric was named
        if name in missing:
            found.append(unread(name, METRICS[name][1], missing[name], planned))
            continue
        run = by_name.get(name, runs[0])
        own = name in by_name
        found.append(
            instrument_noise(
                name,
                run.record,
                _value if own else _beside(name),
                unit=options.unit if name == "reported" else METRICS[name][1],
                direction=options.direction if name == "reported" else "lower",
                planned_pairs=planned,
            )
        )
    return tuple(found)


def _value(trial: Trial) -> float | None:
    return trial.value


def _beside(name: Instrument) -> Callable[[Trial], float | None]:
    return lambda trial: reading_beside(name, trial)
