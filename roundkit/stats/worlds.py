"""Noise worlds: simulated log run times of paired experiments on machines of different unrest."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from roundkit.stats.tails import FloatArray

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class World:
    """Noise of one run, in multiples of sigma; added up on the log scale.

    Attributes:
        name: What reports call it.
        student_df: Degrees of freedom of the white noise (scaled to variance 1); None for normal noise.
        spike_rate: Share of the runs that something else slows down.
        spike_mean: Mean of such a slowdown (exponential).
        ar_coefficient: Persistence of a first-order autoregression of variance 1; None for none.
        drift_sd: Standard deviation of the slope of a linear drift, per run.
        burst_height: Slowdown while a neighbour is busy.
        burst_share: Share of the time that it is.
        burst_runs: Mean length of a busy spell, in runs.
    """

    name: str
    student_df: int | None = None
    spike_rate: float = 0.0
    spike_mean: float = 0.0
    ar_coefficient: float | None = None
    drift_sd: float = 0.0
    burst_height: float = 0.0
    burst_share: float = 0.0
    burst_runs: float = 1.0


QUIET = World("quiet")
"""Independent normal noise."""

SHARED_MACHINE = World(
    "shared-machine", student_df=4, spike_rate=0.03, spike_mean=4.0, ar_coefficient=0.9, drift_sd=0.05
)
"""Heavy-tailed white noise, spikes, a slow autoregression and linear drift."""

NOISY_NEIGHBOUR = World(
    "noisy-neighbour",
    student_df=4,
    spike_rate=0.03,
    spike_mean=4.0,
    ar_coefficient=0.9,
    drift_sd=0.05,
    burst_height=5.0,
    burst_share=0.2,
    burst_runs=8.0,
)
"""The shared machine with a neighbour that is busy a fifth of the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What is true of the two sides, as fractions (log effects where small).

    Attributes:
        gain: True gain of the candidate.
        order_effect: By how much whatever runs second in a pair is faster.
        carry_over: By how much a baseline run right after a candidate run is slower.
        carry_across_pairs: Whether the carry-over outlasts the settling between pairs.
        session_sd: Standard deviation of the difference that each materialization of both sides adds.
        session_pairs: Pairs that share one materialization; 1 is the protocol, 0 is the whole experiment.
    """

    gain: float = 0.0
    order_effect: float = 0.0
    carry_over: float = 0.0
    carry_across_pairs: bool = False
    session_sd: float = 0.0
    session_pairs: int = 1


@dataclass(frozen=True, slots=True)
class SimulatedPairs:
    """Simulated experiments.

    Attributes:
        differences: Log ratios, experiments x pairs; positive is a gain.
        baseline_first: Whether each pair is in the order AB, experiments x pairs.
    """

    differences: FloatArray
    baseline_first: BoolArray


def simulate_pairs(
    rng: np.random.Generator, world: World, sigma: float, experiments: int, pairs: int, effects: Effects
) -> SimulatedPairs:
    """Simulate experiments in quads, each ABBA or BAAB by a coin.

    Args:
        rng: Source of chance.
        world: The machine's unrest.
        sigma: Its scale, as a fraction of the run time.
        experiments: How many.
        pairs: Pairs of each, even.
        effects: What is true of the two sides.

    Returns:
        Differences and orders, experiments x pairs.

    Raises:
        ValueError: ``pairs`` is odd or below 2.
    """
    if pairs < 2 or pairs % 2:
        raise ValueError(f"{pairs} pairs are no whole quads")
    coin = rng.random((experiments, pairs // 2)) < 0.5
    baseline_first = np.stack((coin, ~coin), axis=2).reshape(experiments, pairs)
    log_time = sigma * run_noise(rng, world, experiments, 2 * pairs)
    log_time[:, 1::2] -= effects.order_effect
    is_candidate = np.stack((~baseline_first, baseline_first), axis=2).reshape(experiments, 2 * pairs)
    log_time += effects.carry_over * _after_candidate(is_candidate, across_pairs=effects.carry_across_pairs)
    first, second = log_time[:, 0::2], log_time[:, 1::2]
    differences = np.where(baseline_first, first - second, second - first) - math.log1p(-effects.gain)
    if effects.session_sd:
        length = effects.session_pairs or pairs
        sessions = rng.standard_normal((experiments, -(-pairs // length))) * effects.session_sd
        differences += np.repeat(sessions, length, axis=1)[:, :pairs]
    return SimulatedPairs(np.asarray(differences, dtype=np.float64), baseline_first)


def run_noise(rng: np.random.Generator, world: World, experiments: int, runs: int) -> FloatArray:
    """Return log noise in multiples of sigma, experiments x runs, in the order of time."""
    shape = (experiments, runs)
    if world.student_df is None:
        noise = rng.standard_normal(shape)
    else:
        noise = rng.standard_t(world.student_df, shape) * math.sqrt(1 - 2 / world.student_df)
    if world.spike_rate:
        noise += (rng.random(shape) < world.spike_rate) * rng.exponential(world.spike_mean, shape)
    if world.ar_coefficient is not None:
        noise += _autoregression(rng, world.ar_coefficient, shape)
    if world.drift_sd:
        noise += world.drift_sd * rng.standard_normal((experiments, 1)) * np.arange(runs)
    if world.burst_height:
        noise += world.burst_height * _busy(rng, world.burst_share, world.burst_runs, shape)
    return np.asarray(noise, dtype=np.float64)


def _after_candidate(is_candidate: BoolArray, *, across_pairs: bool) -> BoolArray:
    """Tell which runs are of the baseline and come right after one of the candidate."""
    after = np.zeros_like(is_candidate)
    after[:, 1:] = is_candidate[:, :-1] & ~is_candidate[:, 1:]
    if not across_pairs:
        after[:, 0::2] = False
    return after


def _autoregression(rng: np.random.Generator, coefficient: float, shape: tuple[int, int]) -> FloatArray:
    innovations = rng.standard_normal(shape)
    innovations[:, 1:] *= math.sqrt(1 - coefficient**2)
    return np.asarray(scipy.signal.lfilter([1.0], [1.0, -coefficient], innovations, axis=1), dtype=np.float64)


def _busy(rng: np.random.Generator, share: float, mean_runs: float, shape: tuple[int, int]) -> BoolArray:
    """Return a two-state chain: busy ``share`` of the time, in spells of ``mean_runs``."""
    leave = 1 / mean_runs
    enter = leave * share / (1 - share)
    chance = rng.random(shape)
    busy = np.empty(shape, dtype=np.bool_)
    busy[:, 0] = chance[:, 0] < share
    for run in range(1, shape[1]):
        busy[:, run] = np.where(busy[:, run - 1], chance[:, run] >= leave, chance[:, run] < enter)
    return busy
