"""What A/A runs say about a machine."""

import math

import numpy as np
import pytest

from roundkit.stats.estimate import Order, crossover_estimate
from roundkit.stats.noise import (
    between_session_variance,
    lag_one_autocorrelation,
    noise_summary,
    order_interval,
    pairs_needed,
)
from roundkit.stats.simulate import fixed_pairs, simulate
from roundkit.stats.worlds import QUIET, Effects


def test_sigma_of_known_noise_and_the_pairs_it_needs() -> None:
    rng = np.random.default_rng(1)
    runs = np.exp(rng.normal(0, 0.02, 800))
    d = list(np.log(runs[0::2]) - np.log(runs[1::2]))
    order: list[Order] = ["AB"] * 400
    d[1::2] = [-v for v in d[1::2]]
    order[1::2] = ["BA"] * 200
    found = noise_summary(d, order, list(runs), [0.01, 0.02, 0.05])
    assert found.sigma == pytest.approx(0.02, rel=0.18)
    assert abs(found.autocorrelation) < 0.18
    needed = dict(found.pairs_needed)
    assert needed[0.01] > needed[0.02] > needed[0.05] >= 6
    assert needed[0.01] == pytest.approx(2 * (2.84 * found.sigma / 0.01) ** 2, rel=0.05)


def test_pairs_needed_have_the_power_stated() -> None:
    """Under normal noise; the signed rank costs a little of it there and gains under heavy tails."""
    pairs = pairs_needed(0.03, 0.01)
    protocol = fixed_pairs(pairs, order_rule="ignore")
    power = simulate(QUIET, 0.03, protocol, effects=Effects(gain=0.01), experiments=4000, seed=2).pass_rate
    assert power == pytest.approx(0.8, abs=0.06)
    assert pairs_needed(0.0, 0.01) == 6


def test_too_few_pairs_say_so() -> None:
    found = noise_summary([0.1], ["AB"], [1.0, 1.1], [0.01])
    assert (found.sigma, found.autocorrelation, found.pairs_needed) == (None, None, ((0.01, None),))


def test_autocorrelation() -> None:
    assert lag_one_autocorrelation([1.0, 2.0] * 50) < -0.9
    assert lag_one_autocorrelation([math.exp(k / 10) for k in range(100)]) > 0.9
    assert lag_one_autocorrelation([2.0] * 5) is None
    with pytest.raises(ValueError, match="above zero"):
        lag_one_autocorrelation([1.0, 0.0, 2.0])


def test_between_session_variance() -> None:
    assert between_session_variance([], []) is None
    assert between_session_variance([0.01, -0.01], [0.02, 0.02]) == 0.0
    assert between_session_variance([0.03, -0.03], [0.02, 0.01]) == pytest.approx(0.0009 - 0.00025)
    with pytest.raises(ValueError, match="1 estimates but 0"):
        between_session_variance([0.1], [])


def test_wrong_values_are_refused() -> None:
    with pytest.raises(ValueError, match="gain"):
        pairs_needed(0.01, 0.0)
    with pytest.raises(ValueError, match="sigma"):
        pairs_needed(math.nan, 0.01)


def test_m12_the_order_effect_has_an_interval() -> None:
    order: list[Order] = ["AB", "BA", "BA", "AB", "AB", "BA"]
    noise = [1e-3, -1e-3, 1e-3, -1e-3, 1e-3, -1e-3]
    shifted = [(0.02 if o == "AB" else -0.02) + e for o, e in zip(order, noise, strict=True)]
    ends = order_interval(crossover_estimate(shifted, order))
    assert ends is not None
    assert 0 < ends[0] < 0.02 < ends[1] < 0.03
    assert order_interval(crossover_estimate([0.1], ["AB"])) is None
