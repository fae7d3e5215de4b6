"""The exact signed-rank test against enumeration of every sign."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from roundkit.stats.signed_rank import doubled_mid_ranks, hodges_lehmann, null_distribution, signed_rank


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=10))
@settings(max_examples=80, deadline=None)
def test_m03_ties_and_zeros_are_exact_by_enumeration(values: list[int]) -> None:
    ranks = doubled_mid_ranks(values)
    seen = sum(r for r, v in zip(ranks, values, strict=True) if v > 0)
    carrying = [r for r in ranks if r]
    sums = [sum(itertools.compress(carrying, s)) for s in itertools.product((0, 1), repeat=len(carrying))]
    found = signed_rank(values)
    assert found.doubled_statistic == seen
    assert found.p_gain == pytest.approx(sum(s >= seen for s in sums) / len(sums), abs=1e-15)
    assert found.p_loss == pytest.approx(sum(s <= seen for s in sums) / len(sums), abs=1e-15)


def test_mid_ranks_count_zeros_but_give_them_none() -> None:
    assert doubled_mid_ranks([0, 3, -3, 5, 0]) == [0, 7, 7, 10, 0]


@given(st.lists(st.integers(-6, 6), min_size=2, max_size=14), st.data())
@settings(max_examples=60, deadline=None)
def test_raising_a_value_never_weakens_a_gain_without_zeros(values: list[int], data: st.DataObject) -> None:
    distinct = [2 * v + 1 if v >= 0 else 2 * v - 1 for v in values]
    spread = [v * 100 + k if v > 0 else v * 100 - k for k, v in enumerate(distinct)]
    place = data.draw(st.integers(0, len(values) - 1))
    raised = list(spread)
    raised[place] = abs(raised[place])
    assert signed_rank(raised).p_gain <= signed_rank(spread).p_gain


def test_against_scipy_and_far_tails() -> None:
    rng = np.random.default_rng(4)
    for n in (12, 25, 50):
        values = rng.normal(0.3, 1, n)
        found = signed_rank([round(v * 1e12) for v in values])
        wanted = scipy_stats.wilcoxon(values, alternative="greater", method="exact").pvalue
        assert found.p_gain == pytest.approx(wanted, rel=1e-9)
    assert signed_rank(list(range(1, 101))).p_gain == pytest.approx(0.5**100, rel=1e-12)
    assert null_distribution([2, 4, 6]).sum() == 1.0


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=15))
@settings(max_examples=60, deadline=None)
def test_hodges_lehmann_is_the_median_of_walsh_means(values: list[int]) -> None:
    walsh = [(a + b) / 2 for a, b in itertools.combinations_with_replacement(values, 2)]
    assert hodges_lehmann(values) == Fraction(float(np.median(walsh)))
