"""Looks, boundaries, and the same stop whenever it is recomputed."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy import stats as scipy_stats

from roundkit.stats.estimate import Order, crossover_estimate
from roundkit.stats.sequential import (
    Futility,
    Spending,
    boundaries,
    conditional_power,
    decide_look,
    replay,
    schedule,
    standard_looks,
)

ALPHA = float(scipy_stats.norm.sf(2))


def quads(pairs: int) -> list[Order]:
    return [("AB", "BA")[pair % 2] for pair in range(pairs)]


def test_looks_are_ends_of_quads() -> None:
    assert standard_looks(12) == (6, 8, 10, 12)
    assert standard_looks(6) == (6,)
    for wrong in (4, 7, 0):
        with pytest.raises(ValueError, match="even and at least 6"):
            standard_looks(wrong)


def test_one_look_is_two_sigma() -> None:
    assert boundaries((20,), Spending()) == (2.0,)


def test_two_looks_against_the_bivariate_normal() -> None:
    first, second = boundaries((10, 20), Spending())
    assert scipy_stats.norm.sf(first) == pytest.approx(ALPHA / 4, rel=1e-5)
    root = math.sqrt(0.5)
    crossed, _ = integrate.quad(
        lambda x: scipy_stats.norm.pdf(x) * scipy_stats.norm.sf((second - root * x) / root), -9, first
    )
    assert crossed == pytest.approx(ALPHA * 3 / 4, rel=1e-4)


def test_known_constant_boundary() -> None:
    """Error spent so as to give Pocock's constant for five looks at one-sided 2.5 % (2.413)."""
    looks = (1, 2, 3, 4, 5)
    rng = np.random.default_rng(1)
    score = rng.standard_normal((400_000, 5)).cumsum(axis=1) / np.sqrt(np.arange(1, 6))
    assert np.mean((score >= 2.413).any(axis=1)) == pytest.approx(0.025, abs=0.0013)
    found = boundaries(looks, Spending(alpha=0.025, exponent=1.0))
    assert np.mean((score >= np.array(found)).any(axis=1)) == pytest.approx(0.025, abs=0.0013)


@pytest.mark.parametrize("cap", [6, 10, 20, 40])
def test_m04_the_error_spent_is_two_sigma(cap: int) -> None:
    looks = standard_looks(cap)
    found = boundaries(looks, Spending())
    assert list(found) == sorted(found, reverse=True)
    rng = np.random.default_rng(cap)
    steps = np.sqrt(np.diff((0, *looks)))
    score = (rng.standard_normal((200_000, len(looks))) * steps).cumsum(axis=1) / np.sqrt(looks)
    assert np.mean((score >= np.array(found)).any(axis=1)) == pytest.approx(ALPHA, abs=5.5 * 3.4e-4)


def test_conditional_power_by_hand() -> None:
    z, t, c = 0.5, 0.4, 2.2
    wanted = scipy_stats.norm.cdf((z * t**0.5 + (z + 1.5) * 0.6 / t**0.5 - c) / 0.6**0.5)
    assert conditional_power(z, t, c, 1.5) == pytest.approx(wanted, abs=1e-9)


@given(st.integers(0, 10**6), st.floats(-0.02, 0.04))
@settings(max_examples=40, deadline=None)
def test_m04_recomputed_looks_give_the_same_stop(seed: int, gain: float) -> None:
    """The coordinator decides look by look; a stranger replays the samples, written and read back."""
    rng = random.Random(seed)
    plan = schedule(standard_looks(20), futility=Futility())
    d = [rng.gauss(gain, 0.02) for _ in range(20)]
    live = []
    for pairs in plan.looks:
        live.append(decide_look(crossover_estimate(d[:pairs], quads(pairs)), plan))
        if live[-1].stop is not None:
            break
    stopped_at = live[-1].n
    recorded = [float(repr(v)) for v in d[:stopped_at]]
    assert replay(recorded, quads(stopped_at), plan) == tuple(live)
    assert replay(d, quads(20), plan) == tuple(live)
    assert live[-1].stop is not None


def test_m04_stops_for_each_reason() -> None:
    plan = schedule(standard_looks(12), futility=Futility())
    small = [0.001, -0.001, 0.0005, -0.0005, 0.0007, -0.0007] * 2
    assert replay([0.05 + v for v in small], quads(12), plan)[-1].stop == "gain"
    assert replay([-0.05 + v for v in small], quads(12), plan)[-1].stop == "loss"
    wide = [0.001, 0.001, -0.001, -0.001, 0.0, 0.0] * 2
    assert replay([-0.0004 + v for v in wide], quads(12), plan)[-1].stop == "futility"
    patient = schedule(standard_looks(12))
    looks = replay(small, quads(12), patient)
    assert [look.n for look in looks] == [6, 8, 10, 12]
    assert looks[-1].stop == "last"
    assert all(look.conditional_power is None for look in looks)
    assert replay(small[:7], quads(7), patient)[-1].stop is None


def test_m04_replay_knows_the_noise_between_sessions() -> None:
    d = [0.02 + 0.001 * (k % 3) for k in range(12)]
    plan = schedule(standard_looks(12))
    plain, weak = replay(d, quads(12), plan), replay(d, quads(12), plan, tau=0.008)
    assert weak[0].z_eff < plain[0].z_eff
    assert weak[0].z_eff == crossover_estimate(d[:6], quads(6), tau=0.008).z_eff


def test_m04_a_boundary_met_exactly_stops() -> None:
    plan = schedule((6,))
    found = crossover_estimate([0.01] * 6, quads(6))
    at = type(found)(**{name: getattr(found, name) for name in found.__slots__} | {"z_eff": 2.0})
    below = type(found)(**{name: getattr(found, name) for name in found.__slots__} | {"z_eff": 1.999999999})
    assert decide_look(at, plan).stop == "gain"
    assert decide_look(below, plan).stop == "last"


def test_wrong_looks_are_refused() -> None:
    with pytest.raises(ValueError, match="must rise"):
        boundaries((6, 6), Spending())
    plan = schedule((6, 8))
    with pytest.raises(ValueError, match="no look"):
        decide_look(crossover_estimate([0.1] * 7, quads(7)), plan)
    with pytest.raises(ValueError, match="orders is missing"):
        decide_look(crossover_estimate([0.1] * 6, ["AB"] * 6), plan)
