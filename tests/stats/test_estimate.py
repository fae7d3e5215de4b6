"""The crossover estimate: arithmetic, direction, order effect, and indifference to float noise."""

import math
import random
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from roundkit.models.readings import LARGEST_FIGURE, SMALLEST_FIGURE
from roundkit.stats.differences import BadSample, gain_fraction, gain_in_unit, paired_differences
from roundkit.stats.estimate import Order, crossover_estimate, delta_interval, weakened_z
from roundkit.stats.rounding import Z_CAP


def quads(pairs: int) -> list[Order]:
    """Orders of ABBA quads."""
    return [("AB", "BA")[pair % 2] for pair in range(pairs)]


whole_quads = st.integers(3, 12).map(lambda half: 2 * half)
metric = st.floats(1e-3, 1e6, allow_nan=False)


def test_estimate_by_hand() -> None:
    found = crossover_estimate([0.03, 0.01, 0.05, 0.01, 0.04, 0.01], quads(6))
    assert found.n_ab == found.n_ba == 3
    assert found.delta == pytest.approx(0.025)
    assert found.order_effect == pytest.approx(0.015)
    assert found.df == 4
    assert found.s == pytest.approx(math.sqrt(0.0002 / 4))
    assert found.se == pytest.approx(0.5 * found.s * math.sqrt(2 / 3))
    p = scipy_stats.t.sf(found.delta / found.se, 4)
    assert found.p_gain == pytest.approx(p, rel=1e-10)
    assert found.z_eff == pytest.approx(scipy_stats.norm.isf(p), abs=1e-8)
    assert found.gain == pytest.approx(1 - math.exp(-0.025))


def test_unbalanced_orders_weigh_each_order_alike() -> None:
    found = crossover_estimate([0.1, 0.1, 0.1, 0.3], ["AB", "AB", "AB", "BA"])
    assert (found.n_ab, found.n_ba) == (3, 1)
    assert found.delta == pytest.approx(0.2)


def test_from_twelve_pairs_on_the_signed_rank_and_hodges_lehmann() -> None:
    rng = random.Random(3)
    values = [rng.gauss(0.02, 0.02) for _ in range(12)]
    eleven = crossover_estimate(values[:11], quads(11))
    twelve = crossover_estimate(values, quads(12))
    assert (eleven.statistic, twelve.statistic) == ("t", "signed-rank")
    assert eleven.delta == eleven.delta_mean
    assert twelve.delta == twelve.hodges_lehmann
    corrected = [
        v - twelve.order_effect * (1 if o == "AB" else -1) for v, o in zip(values, quads(12), strict=True)
    ]
    assert twelve.p_gain == pytest.approx(
        scipy_stats.wilcoxon(corrected, alternative="greater", method="exact").pvalue, rel=1e-9
    )
    walsh = sorted((corrected[i] + corrected[j]) / 2 for i in range(12) for j in range(i, 12))
    assert twelve.hodges_lehmann == pytest.approx((walsh[38] + walsh[39]) / 2, abs=1e-11)


@pytest.mark.parametrize(
    ("ab", "ba", "sign"), [(0.02, 0.03, 1), (-0.02, -0.03, -1), (0.03, 0.0, 0), (0.03, -0.01, 0)]
)
def test_m02_each_order_shows_what_the_lesser_order_shows(ab: float, ba: float, sign: int) -> None:
    noise = [0.001, -0.001, 0.002, -0.002]
    d = [mean + jitter for jitter in noise for mean in (ab, ba)]
    order: list[Order] = ["AB", "BA"] * 4
    found = crossover_estimate(d, order, statistic="each-order")
    assert found.z_eff is not None
    assert found.delta == pytest.approx((ab + ba) / 2)
    assert (found.z_eff > 0) - (found.z_eff < 0) == sign
    if sign:
        lesser = min(abs(ab), abs(ba))
        both = crossover_estimate([sign * lesser + jitter for jitter in noise for _ in range(2)], order)
        assert both.z_eff is not None
        assert 0 < abs(found.z_eff) < abs(both.z_eff)


def test_a_plan_may_fix_the_statistic() -> None:
    values = [0.01 * k for k in range(14)]
    assert crossover_estimate(values, quads(14), statistic="t").statistic == "t"
    assert crossover_estimate(values[:8], quads(8), statistic="signed-rank").statistic == "signed-rank"


@pytest.mark.parametrize("pairs", range(6, 31, 4))
def test_m03_zero_variance(pairs: int) -> None:
    gain = crossover_estimate([0.01] * pairs, quads(pairs))
    loss = crossover_estimate([-0.01] * pairs, quads(pairs))
    none = crossover_estimate([0.0] * pairs, quads(pairs))
    most = Z_CAP if pairs < 12 else round(float(scipy_stats.norm.isf(0.5**pairs)), 9)
    assert gain.z_eff == pytest.approx(most, abs=2e-9)
    assert loss.z_eff == -gain.z_eff
    assert (none.z_eff, none.delta, none.order_z) == (0.0, 0.0, 0.0)
    assert gain.s == gain.se == 0.0


@pytest.mark.parametrize(
    ("n", "orders"), [(1, ["AB"]), (2, ["AB", "BA"]), (3, ["AB"] * 3), (14, ["BA"] * 14)]
)
def test_m03_what_the_pairs_do_not_allow_is_none(n: int, orders: list[Order]) -> None:
    found = crossover_estimate([0.01] * n, orders)
    assert found.z_eff is None
    assert found.se is None
    assert found.delta == pytest.approx(0.01)


@pytest.mark.parametrize("m", [1e-9, 0.1, 1 / 3, 0.7, 1.1, math.pi])
@pytest.mark.parametrize("n", range(2, 51))
def test_fault_14_m03_one_difference_among_zeros(n: int, m: float) -> None:
    """[m, 0, 0, 0]: evidence that depends neither on the size of m nor on where it stands nor on its sign."""
    found = crossover_estimate([m] + [0.0] * (n - 1), quads(n))
    unit = crossover_estimate([1.0] + [0.0] * (n - 1), quads(n))
    assert found.z_eff == unit.z_eff
    assert found.order_z == unit.order_z
    moved = [0.0] * n
    moved[(n - 1) // 2 * 2] = m
    assert crossover_estimate(moved, quads(n)).z_eff == found.z_eff
    turned = crossover_estimate([-m] + [0.0] * (n - 1), quads(n)).z_eff
    assert turned == (None if found.z_eff is None else -found.z_eff + 0.0)
    if found.z_eff is not None:
        assert 0.0 <= found.z_eff < 2


@pytest.mark.parametrize("n", range(6, 51))
def test_fault_14_ties_survive_scaling_of_the_samples(n: int) -> None:
    """Equal ratios measured at different speeds tie, though their logs need not be equal floats."""
    scales = [0.1 * (k + 1) / 3 for k in range(n)]
    plain = paired_differences([3.0] * n, [2.9 if k % 3 else 3.1 for k in range(n)], "lower")
    scaled = paired_differences(
        [3.0 * s for s in scales], [(2.9 if k % 3 else 3.1) * s for k, s in enumerate(scales)], "lower"
    )
    assert crossover_estimate(plain, quads(n)) == crossover_estimate(scaled, quads(n))


@given(st.lists(metric, min_size=6, max_size=24), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_fault_14_float_noise_of_the_last_bits_changes_nothing(
    values: list[float], rng: random.Random
) -> None:
    pairs = len(values) // 2 * 2
    exact = [round(math.log(v), 6) for v in values[:pairs]]
    noisy = [d + rng.uniform(-4e-13, 4e-13) for d in exact]
    assert crossover_estimate(noisy, quads(pairs)) == crossover_estimate(exact, quads(pairs))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_m03_swapping_sides_turns_every_sign(data: st.DataObject) -> None:
    pairs = data.draw(whole_quads)
    d = data.draw(st.lists(st.integers(-40, 40), min_size=pairs, max_size=pairs))
    found = crossover_estimate([v / 1000 for v in d], quads(pairs))
    other = crossover_estimate([-v / 1000 for v in d], quads(pairs))
    assert other.z_eff == -found.z_eff + 0.0
    assert (other.p_gain, other.p_loss) == (found.p_loss, found.p_gain)
    assert other.delta == -found.delta + 0.0


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_fault_25_m02_an_order_effect_is_estimated_and_removed(data: st.DataObject) -> None:
    """Whatever runs second is faster by any amount: gain and evidence stay, the order effect moves by it."""
    pairs = data.draw(whole_quads)
    d = data.draw(st.lists(st.integers(-40, 40), min_size=pairs, max_size=pairs))
    effect = data.draw(st.integers(-100, 100))
    plain = crossover_estimate([v / 1000 for v in d], quads(pairs))
    shifted = crossover_estimate(
        [(v + (effect if o == "AB" else -effect)) / 1000 for v, o in zip(d, quads(pairs), strict=True)],
        quads(pairs),
    )
    assert shifted.z_eff == plain.z_eff
    assert shifted.delta == plain.delta
    assert shifted.order_effect == pytest.approx(plain.order_effect + effect / 1000, abs=1e-12)


@given(st.lists(metric, min_size=6, max_size=20), st.lists(metric, min_size=20, max_size=20))
@settings(max_examples=60, deadline=None)
def test_m03_direction(baseline: list[float], other: list[float]) -> None:
    candidate = other[: len(baseline)]
    lower = paired_differences(baseline, candidate, "lower")
    higher = paired_differences(baseline, candidate, "higher")
    assert lower == pytest.approx([-d for d in higher], abs=1e-11)
    for b, c, d in zip(baseline, candidate, lower, strict=True):
        assert d == pytest.approx(math.log(b) - math.log(c), abs=1e-11)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.0, -1.0])
@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_m03_unusable_values_are_refused_with_their_place(side: str, bad: float) -> None:
    sides = {"baseline": [1.0, 1.0, 1.0], "candidate": [1.0, 1.0, 1.0]}
    sides[side][1] = bad
    with pytest.raises(BadSample) as caught:
        paired_differences(sides["baseline"], sides["candidate"], "lower")
    assert (caught.value.side, caught.value.index) == (side, 1)
    assert "pair 1" in str(caught.value)


def test_m03_other_wrong_input_is_refused() -> None:
    with pytest.raises(ValueError, match="2 baseline values but 1"):
        paired_differences([1, 2], [1], "lower")
    with pytest.raises(ValueError, match="no pair"):
        paired_differences([], [], "lower")
    with pytest.raises(ValueError, match="direction"):
        paired_differences([1], [1], "up")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no pair"):
        crossover_estimate([], [])
    with pytest.raises(ValueError, match="1 differences but 2 orders"):
        crossover_estimate([0.1], ["AB", "BA"])
    with pytest.raises(ValueError, match="pair 0 is nan"):
        crossover_estimate([math.nan], ["AB"])
    with pytest.raises(ValueError, match="'BB'"):
        crossover_estimate([0.1], ["BB"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="tau"):
        crossover_estimate([0.1, 0.1], ["AB", "BA"], tau=-1)


def test_extreme_ratios_stay_finite() -> None:
    (d,) = paired_differences([1e308], [1e-308], "lower")
    assert d == pytest.approx(616 * math.log(10))


def test_gain_in_fraction_and_unit() -> None:
    (d,) = paired_differences([100.0], [99.0], "lower")
    assert gain_fraction(d) == 0.01
    assert gain_in_unit([90.0, 100.0, 110.0], d, "lower") == pytest.approx(1.0)
    (d,) = paired_differences([100.0], [125.0], "higher")
    assert gain_in_unit([100.0], d, "higher") == pytest.approx(25.0)
    assert gain_fraction(d) == pytest.approx(0.2)


def test_between_session_noise_widens_the_interval_and_weakens_the_evidence() -> None:
    values = [0.02, 0.03, 0.025, 0.01, 0.03, 0.02, 0.015, 0.02]
    plain = crossover_estimate(values, quads(8))
    weak = crossover_estimate(values, quads(8), tau=0.005)
    assert 0 < weak.z_eff < plain.z_eff
    narrow, wide = delta_interval(plain), delta_interval(plain, tau=0.005)
    assert narrow is not None and wide is not None
    assert wide[0] < narrow[0] < plain.delta < narrow[1] < wide[1]
    assert delta_interval(crossover_estimate([0.1], ["AB"])) is None
    assert weakened_z(2.0, 0.01, 0.005) == pytest.approx(2 / math.sqrt(2))
    assert weakened_z(3.0, 0.0, 0.005) == 0.0


def test_coverage_of_the_interval() -> None:
    rng = random.Random(5)
    hits = 0
    for _ in range(400):
        low, high = delta_interval(crossover_estimate([rng.gauss(0.01, 0.02) for _ in range(10)], quads(10)))
        hits += low <= 0.01 <= high
    assert hits > 0.95 * 400 - 5 * 4.4


def test_m05_extreme_figures_have_a_finite_gain_and_interval() -> None:
    """The bounds of reported figures, far apart: no step between them and the verdict overflows."""
    small, large = SMALLEST_FIGURE, LARGEST_FIGURE
    baseline, candidate = [small, small, large, small], [large, large, small, small]
    directions: tuple[Literal["lower"], Literal["higher"]] = ("lower", "higher")
    for direction in directions:
        estimate = crossover_estimate(paired_differences(baseline, candidate, direction), quads(4))
        interval = delta_interval(estimate)
        assert interval is not None
        shown = [gain_fraction(end) for end in (*interval, estimate.delta)]
        assert all(map(math.isfinite, [*shown, gain_in_unit(baseline, estimate.delta, direction)]))
