"""From A/A trials to a benchmark's noise under one instrument, and the gates that it would bear."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from roundkit.models.campaign import Direction, Noise
from roundkit.models.comparison import InstrumentNoise, NoiseReport, PairsNeeded
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.instruments import Instrument
from roundkit.models.trial import Trial
from roundkit.rules.proposal import smallest_line
from roundkit.stats.differences import paired_differences
from roundkit.stats.estimate import Order
from roundkit.stats.noise import NoiseSummary, noise_summary, order_interval
from roundkit.stats.verdict import smallest_detectable_gain

GAINS = (0.01, 0.02, 0.05)
"""Gains to plan for, fractions."""

_DIGITS = 4
_LEAST_SAID = 5e-5


def instrument_noise(
    instrument: Instrument,
    record: ExperimentRecord,
    read: Callable[[Trial], float | None],
    *,
    unit: str,
    direction: Direction,
    planned_pairs: int,
) -> InstrumentNoise:
    """Summarize complete A/A pairs under one instrument.

    Args:
        instrument: Which.
        record: The experiment; warm-ups do not count.
        read: The instrument's reading of a trial; null where there is none.
        unit: Unit of the readings.
        direction: Whether less or more is better.
        planned_pairs: Pairs to say the smallest gain for, beside those that were run.
    """
    trials = [trial for trial in record.trials if trial.planned.pair is not None]
    runs = [value for trial in trials if (value := read(trial)) is not None and value > 0]
    if record.outcome != "complete" or len(runs) < len(trials) or not runs:
        why = record.detail or record.reason or "this host gives no reading"
        return unread(instrument, unit, why, planned_pairs)
    values: dict[tuple[int | None, str], float] = {}
    orders: dict[int | None, Order] = {}
    for trial, run in zip(trials, runs, strict=True):
        values[trial.planned.pair, trial.planned.side] = run
        orders[trial.planned.pair] = trial.planned.order
    baseline = [values[pair, "baseline"] for pair in orders]
    candidate = [values[pair, "candidate"] for pair in orders]
    differences = paired_differences(baseline, candidate, direction)
    summary = noise_summary(differences, list(orders.values()), runs, GAINS)
    return _filled(instrument, unit, summary, median(runs), planned_pairs)


def unread(instrument: Instrument, unit: str, why: str, planned_pairs: int) -> InstrumentNoise:
    """Return what stands for an instrument that gave no figures."""
    return InstrumentNoise(
        instrument=instrument, unit=unit, missing=why, pairs=0, planned_pairs=planned_pairs
    )


def _filled(
    instrument: Instrument, unit: str, summary: NoiseSummary, middle: float, planned_pairs: int
) -> InstrumentNoise:
    estimate, ends = summary.estimate, order_interval(summary.estimate)
    return InstrumentNoise(
        instrument=instrument,
        unit=unit,
        pairs=estimate.n,
        median=middle,
        sigma=summary.sigma,
        autocorrelation=summary.autocorrelation,
        difference=estimate.gain,
        order_effect=estimate.order_effect,
        order_low=ends[0] if ends else None,
        order_high=ends[1] if ends else None,
        needed=tuple(
            PairsNeeded(gain=gain, pairs=pairs) for gain, pairs in summary.pairs_needed if pairs is not None
        ),
        detectable=smallest_detectable_gain(estimate.s, estimate.n),
        detectable_planned=smallest_detectable_gain(estimate.s, planned_pairs),
        planned_pairs=planned_pairs,
    )


def noise_block(found: InstrumentNoise, *, machine: str, date: str, trial_s: float) -> Noise | None:
    """Return what goes under ``test_plan: noise`` of a campaign; None without figures."""
    if found.sigma is None:
        return None
    return Noise(
        sigma=min(1.0, _rounded(found.sigma)),
        instrument=found.instrument,
        machine=machine,
        date=date,
        trial_s=_rounded(trial_s),
    )


def block_under(report: NoiseReport, instrument: Instrument) -> Noise | None:
    """Return that block for any instrument of a report, whichever its trials were run for."""
    row = next(row for row in report.instruments if row.instrument == instrument)
    date = f"{report.plan.planned_utc:%Y-%m-%d}"
    return noise_block(row, machine=report.environment.machine, date=date, trial_s=report.trial_s)


def gates_in_words(found: InstrumentNoise, min_gain: float) -> str:
    """Say which gates an instrument's noise would bear.

    Args:
        found: The noise.
        min_gain: The shipped test plan's smallest gain, a fraction.
    """
    if found.detectable_planned is None or not found.needed:
        return f"{found.instrument}: {found.missing or 'too few pairs to tell'}"
    least = _percent(found.detectable_planned)
    any_gain = found.detectable_planned < _LEAST_SAID
    what = "any gain" if any_gain else f"a gain of {least} or more"
    shown = f"with {found.planned_pairs} pairs this benchmark shows {what}"
    if found.detectable_planned <= min_gain:
        return (
            f"{found.instrument}: {shown}; ab_ba_pairs: {found.planned_pairs} and min_gain: {min_gain:g} hold"
        )
    line = max(min_gain, smallest_line(found.detectable_planned))
    smallest = min(found.needed, key=lambda row: row.gain)
    return (
        f"{found.instrument}: {shown}; propose min_gain: {line:g} with ab_ba_pairs: {found.planned_pairs},"
        f" or ab_ba_pairs: {smallest.pairs} to see {_percent(smallest.gain)}"
    )


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2g} %"


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
