"""Interaction ratios: coverage, unmeasurable denominators, and the bias of selected gains."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from roundkit.stats.estimate import Estimate, Order, crossover_estimate
from roundkit.stats.ratio import (
    MeasuredGain,
    conditional_estimate,
    fieller_interval,
    ratio_of_gains,
)


def measured(rng: np.random.Generator, gain: float, pairs: int = 20, sigma: float = 0.02) -> Estimate:
    order: list[Order] = [("AB", "BA")[k % 2] for k in range(pairs)]
    return crossover_estimate(list(rng.normal(-math.log1p(-gain), sigma, pairs)), order)


def as_gain(estimate: Estimate) -> MeasuredGain:
    """A gain in units of the baseline, with its error by the delta method."""
    assert estimate.se is not None
    return MeasuredGain(
        -math.expm1(-estimate.delta_mean), math.exp(-estimate.delta_mean) * estimate.se, estimate.df
    )


def test_fieller_ends_solve_the_quadratic() -> None:
    low, high = fieller_interval(0.05, 0.01, 0.06, 0.012, 2.0)
    for end in (low, high):
        assert (0.05 - end * 0.06) ** 2 == pytest.approx(4 * (0.01**2 + end**2 * 0.012**2))
    assert low < 0.05 / 0.06 < high
    assert fieller_interval(0.05, 0.01, 0.02, 0.01, 2.0) is None


def test_m06_coverage_on_simulated_composition() -> None:
    """True ratios of 1 and 0.5: the 95 % interval covers 94 to 98 %, within five standard errors."""
    rng = np.random.default_rng(6)
    for ratio in (1.0, 0.5):
        hits = count = 0
        for _ in range(700):
            found = ratio_of_gains(as_gain(measured(rng, 0.05 * ratio)), as_gain(measured(rng, 0.05)))
            if found is not None:
                count += 1
                hits += found.low <= ratio <= found.high
        slack = 5 * math.sqrt(0.95 * 0.05 / count)
        assert 0.94 - slack < hits / count
        assert count > 680


def test_m06_no_phantom_interaction_with_a_fresh_standalone_gain() -> None:
    """The luckiest of five equal lanes: its reused gain looks like an interaction, a fresh one does not."""
    rng = np.random.default_rng(7)
    reused, fresh = [], []
    for _ in range(150):
        best = max((measured(rng, 0.03, sigma=0.04, pairs=10) for _ in range(5)), key=lambda e: e.delta)
        step = measured(rng, 0.03, sigma=0.04, pairs=10)
        reused.append((step.delta_mean, best.delta_mean))
        fresh.append((step.delta_mean, measured(rng, 0.03, sigma=0.04, pairs=10).delta_mean))
    assert np.divide(*np.mean(reused, axis=0)) < 0.8
    assert 0.75 < np.divide(*np.mean(fresh, axis=0)) < 1.33


def test_m06_fault_16_a_denominator_not_clearly_above_zero_is_no_ratio() -> None:
    rng = np.random.default_rng(8)
    assert ratio_of_gains(as_gain(measured(rng, 0.05)), as_gain(measured(rng, 0.0))) is None
    lossy = ratio_of_gains(as_gain(measured(rng, -0.15)), as_gain(measured(rng, 0.10)))
    assert lossy is not None
    assert lossy.value < -1
    assert lossy.high < 0


def test_m05_conditional_likelihood_takes_back_the_selection() -> None:
    rng = np.random.default_rng(9)
    for true in (0.0, 1.0, 1.5):
        seen = rng.normal(true, 1.0, 40_000)
        passed = seen[seen > 2][:800]
        corrected = np.mean([conditional_estimate(z, 1.0, 2.0) for z in passed])
        assert abs(corrected - true) < 0.6 * abs(np.mean(passed) - true)
    for z in (2.5, 3.0, 6.0):
        mean = conditional_estimate(z, 1.0, 2.0)
        expected = mean + scipy_stats.norm.pdf(2 - mean) / scipy_stats.norm.sf(2 - mean)
        assert expected == pytest.approx(z)
    assert conditional_estimate(0.02, 0.01, 2.0) == 0.02
    assert conditional_estimate(0.020001, 0.01, 2.0) == 0.0
    assert conditional_estimate(0.5, 0.01, 2.0) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="above zero"):
        conditional_estimate(0.1, 0.0, 2.0)
