"""Error rates and power of the protocol, in short; bounds leave five standard errors of the simulation."""

import math

import numpy as np
import pytest

from roundkit.stats.estimate import Order, crossover_estimate
from roundkit.stats.sequential import replay
from roundkit.stats.simulate import early_stopping, fixed_pairs, signed_rank_z, simulate
from roundkit.stats.verdict import Gates, verdict
from roundkit.stats.worlds import (
    NOISY_NEIGHBOUR,
    QUIET,
    SHARED_MACHINE,
    Effects,
    World,
    run_noise,
    simulate_pairs,
)

EXPERIMENTS = 6000
FALSE_PASS = 0.029


def at_most(rate: float, experiments: int = EXPERIMENTS) -> float:
    """The largest share that chance gives a true rate, but for three in ten million."""
    return rate + 5 * math.sqrt(rate * (1 - rate) / experiments)


def at_least(rate: float, experiments: int = EXPERIMENTS) -> float:
    return rate - 5 * math.sqrt(rate * (1 - rate) / experiments)


def orders(row: np.ndarray) -> list[Order]:
    return ["AB" if first else "BA" for first in row]


@pytest.mark.parametrize("world", [QUIET, SHARED_MACHINE, NOISY_NEIGHBOUR], ids=lambda w: w.name)
@pytest.mark.parametrize("cap", [10, 20, 40])
@pytest.mark.parametrize("sigma", [0.01, 0.03])
def test_m01_fault_13_fault_24_a_a_passes_at_the_stated_rate(world: World, cap: int, sigma: float) -> None:
    found = simulate(world, sigma, early_stopping(cap), experiments=EXPERIMENTS, seed=cap)
    assert found.pass_rate <= at_most(FALSE_PASS)
    assert found.loss_rate <= at_most(FALSE_PASS)


BAR = [
    (0.01, 10, 0.01, 0.39, 8.6),
    (0.01, 20, 0.01, 0.73, 14.5),
    (0.01, 40, 0.01, 0.96, 21.5),
    (0.01, 10, 0.02, 0.85, 7.7),
    (0.03, 20, 0.05, 0.97, 11.2),
    (0.03, 40, 0.02, 0.73, 26.7),
]


@pytest.mark.parametrize(("sigma", "cap", "gain", "power", "pairs"), BAR)
def test_m01_power_and_pairs(sigma: float, cap: int, gain: float, power: float, pairs: float) -> None:
    """Evidence alone, without the repetition that an order effect costs."""
    protocol = early_stopping(cap, order_rule="ignore")
    found = simulate(
        SHARED_MACHINE, sigma, protocol, effects=Effects(gain=gain), experiments=EXPERIMENTS, seed=1
    )
    assert found.pass_rate >= at_least(power)
    assert found.mean_pairs <= pairs + 5 * float(np.std(found.pairs_used)) / math.sqrt(EXPERIMENTS)


@pytest.mark.parametrize("cap", [10, 20, 40])
@pytest.mark.parametrize("session_sd", [0.0025, 0.005, 0.01])
def test_m01_between_session_noise_costs_no_false_pass(session_sd: float, cap: int) -> None:
    effects = Effects(session_sd=session_sd)
    found = simulate(
        SHARED_MACHINE, 0.01, early_stopping(cap), effects=effects, experiments=EXPERIMENTS, seed=3
    )
    assert found.pass_rate <= at_most(FALSE_PASS)


def test_m01_one_materialization_for_both_pairs_of_a_quad_would_be_wrong() -> None:
    """The reason why both sides are materialized anew for each pair."""
    effects = Effects(session_sd=0.01, session_pairs=2)
    found = simulate(SHARED_MACHINE, 0.01, early_stopping(20), effects=effects, experiments=4000, seed=3)
    assert found.pass_rate > 0.035


def test_m01_one_materialization_for_the_whole_experiment_would_be_wrong() -> None:
    effects = Effects(session_sd=0.005, session_pairs=0)
    found = simulate(SHARED_MACHINE, 0.01, early_stopping(20), effects=effects, experiments=2000, seed=4)
    assert found.pass_rate > 0.06


@pytest.mark.parametrize("cap", [10, 20, 40])
def test_m02_fault_25_order_effect(cap: int) -> None:
    effects = Effects(order_effect=0.01)
    found = simulate(
        SHARED_MACHINE, 0.01, early_stopping(cap), effects=effects, experiments=EXPERIMENTS, seed=5
    )
    ignored = simulate(
        SHARED_MACHINE,
        0.01,
        early_stopping(cap, order_rule="ignore"),
        effects=effects,
        experiments=EXPERIMENTS,
        seed=5,
    )
    assert found.pass_rate <= at_most(0.03)
    assert ignored.pass_rate <= at_most(0.03)
    assert found.order_rate > 0.3


def test_m02_a_fixed_order_would_pass_on_the_order_effect() -> None:
    drawn = simulate_pairs(
        np.random.default_rng(6), SHARED_MACHINE, 0.01, 2000, 20, Effects(order_effect=0.01)
    )
    second_faster = np.where(drawn.baseline_first, drawn.differences, -drawn.differences)
    z = second_faster.mean(axis=1) / second_faster.std(axis=1, ddof=1) * math.sqrt(20)
    assert np.mean(z > 2.1) > 0.3


@pytest.mark.parametrize("carry_over", [0.005, 0.01, 0.02])
def test_m02_carry_over_well_above_the_noise_is_caught(carry_over: float) -> None:
    """A twentieth of the carry-over as noise, as instruction counts have it."""
    effects = Effects(carry_over=carry_over)
    protocol = early_stopping(20)
    found = simulate(QUIET, carry_over / 20, protocol, effects=effects, experiments=EXPERIMENTS, seed=7)
    assert found.pass_rate <= at_most(0.03)


@pytest.mark.parametrize("cap", [10, 20, 40])
@pytest.mark.parametrize("carry_over", [0.005, 0.01, 0.02])
def test_m02_no_carry_over_passes_where_either_order_is_asked(carry_over: float, cap: int) -> None:
    protocol = early_stopping(cap, order_rule="ignore", statistic="each-order")
    effects = Effects(carry_over=carry_over)
    found = simulate(SHARED_MACHINE, 0.01, protocol, effects=effects, experiments=EXPERIMENTS, seed=9)
    assert found.pass_rate <= at_most(0.025)
    real = simulate(
        SHARED_MACHINE, 0.01, protocol, effects=Effects(gain=0.05), experiments=EXPERIMENTS, seed=9
    )
    assert real.pass_rate >= 0.94


def test_m02_carry_over_is_withheld_more_often_with_the_order_rule() -> None:
    effects = Effects(carry_over=0.02)
    rates = [
        simulate(
            SHARED_MACHINE, 0.01, fixed_pairs(20, order_rule=rule), effects=effects, experiments=2000, seed=8
        ).pass_rate
        for rule in ("ignore", "block")
    ]
    assert rates[1] < 0.6 * rates[0]


def test_fault_13_identical_candidates_through_the_verdict_itself() -> None:
    """A/A 400 times, sample by sample, as the coordinator decides: passes and failures at the stated rate."""
    drawn = simulate_pairs(np.random.default_rng(9), SHARED_MACHINE, 0.02, 400, 10, Effects())
    gates = Gates(min_gain=0.0, loss_margin=0.0)
    words = [
        verdict(crossover_estimate(list(d), orders(first)), gates).verdict
        for d, first in zip(drawn.differences, drawn.baseline_first, strict=True)
    ]
    assert words.count("pass") <= 400 * at_most(FALSE_PASS, 400)
    assert words.count("fail") <= 400 * at_most(FALSE_PASS, 400)


@pytest.mark.parametrize("gain", [0.0, 0.02])
def test_m01_the_simulation_decides_like_the_estimator(gain: float) -> None:
    """The same experiments one by one through the exact estimator: same stop, outcome and evidence."""
    protocol = early_stopping(20, order_rule="block")
    found = simulate(SHARED_MACHINE, 0.02, protocol, effects=Effects(gain=gain), experiments=80, seed=10)
    drawn = simulate_pairs(np.random.default_rng(10), SHARED_MACHINE, 0.02, 80, 20, Effects(gain=gain))
    for k in range(80):
        order = orders(drawn.baseline_first[k])
        last = replay(list(drawn.differences[k]), order, protocol.plan)[-1]
        exact = crossover_estimate(list(drawn.differences[k][: last.n]), order[: last.n])
        assert found.pairs_used[k] == last.n
        assert found.z_eff[k] == pytest.approx(last.z_eff, abs=1e-6)
        assert found.delta[k] == pytest.approx(exact.delta_mean, abs=1e-9)
        assert found.se[k] == pytest.approx(exact.se, abs=1e-9)
        assert bool(found.order_flagged[k]) == (abs(exact.order_z) > 2)


def test_m05_the_headline_is_a_fresh_rerun() -> None:
    """Rounds of 20 tickets, 4 real: the best ticket's own gain is too good, a rerun of it is not."""
    rng = np.random.default_rng(11)
    rounds = 400
    gains = np.zeros((rounds, 20))
    gains[:, :4] = 0.03
    tickets = simulate(QUIET, 0.03, fixed_pairs(20, order_rule="ignore"), experiments=rounds * 20, seed=12)
    seen = tickets.delta.reshape(rounds, 20) - np.log1p(-gains)
    best = seen.argmax(axis=1)
    true = -np.log1p(-gains[np.arange(rounds), best])
    rerun = true + rng.normal(0, float(tickets.se.mean()), rounds)
    assert np.mean(seen.max(axis=1) - true) > 0.005
    assert abs(np.mean(rerun - true)) < 0.001 + 5 * float(tickets.se.mean()) / math.sqrt(rounds)


def test_worlds_have_the_noise_they_state() -> None:
    rng = np.random.default_rng(13)
    assert np.std(run_noise(rng, QUIET, 2000, 40)) == pytest.approx(1.0, abs=0.02)
    slow = run_noise(rng, World("slow", student_df=30, ar_coefficient=0.9), 4000, 40)
    assert np.var(slow) == pytest.approx(2.0, abs=0.1)
    busy = run_noise(
        rng, World("busy", student_df=30, burst_height=100, burst_share=0.2, burst_runs=8), 2000, 40
    )
    assert np.mean(busy > 50) == pytest.approx(0.2, abs=0.03)
    with pytest.raises(ValueError, match="whole quads"):
        simulate_pairs(rng, QUIET, 0.01, 2, 7, Effects())


def test_quads_are_abba_or_baab() -> None:
    drawn = simulate_pairs(np.random.default_rng(14), QUIET, 0.01, 500, 12, Effects())
    assert (drawn.baseline_first[:, 0::2] != drawn.baseline_first[:, 1::2]).all()
    assert 0.4 < drawn.baseline_first[:, 0].mean() < 0.6


def test_signed_rank_table_matches_the_exact_test() -> None:
    rows = np.random.default_rng(15).normal(0.2, 1, (30, 16))
    for row, z in zip(rows, signed_rank_z(rows), strict=True):
        order: list[Order] = ["AB", "BA"] * 8
        centred = row.copy()
        centred[0::2] += row[1::2].mean() / 2 - row[0::2].mean() / 2
        centred[1::2] += row[0::2].mean() / 2 - row[1::2].mean() / 2
        assert crossover_estimate(list(row), order).z_eff == pytest.approx(
            signed_rank_z(centred[None])[0], abs=1e-8
        )
        assert math.isfinite(z)


def test_fixed_t_is_the_fixed_design() -> None:
    protocol = fixed_pairs(20, statistic="t", order_rule="ignore")
    found = simulate(
        SHARED_MACHINE, 0.01, protocol, effects=Effects(gain=0.01), experiments=EXPERIMENTS, seed=16
    )
    assert (found.pairs_used == 20).all()
    assert found.pass_rate >= at_least(0.66)
