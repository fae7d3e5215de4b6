"""P13: the decision rule of a policy pilot, ties and censoring included."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundkit.rules.policy_decision import (
    LATER_THAN_ANY,
    RunResult,
    decide_policy,
    equal_arms_say_faster,
)

NEVER = LATER_THAN_ANY
BROKE = None
THRESHOLD = 0.8

TABLE = {
    "P first everywhere": ([5, 5, 5], [10, 10, 10], "faster"),
    "S first everywhere": ([10, 10, 10], [5, 5, 5], "slower"),
    "P first but once": ([5, 5, 11], [10, 10, 10], "not distinguishable"),
    "one tie": ([5, 5, 10], [10, 10, 10], "not distinguishable"),
    "all ties": ([5, 5, 5], [5, 5, 5], "not distinguishable"),
    "P first, ratio at the threshold": ([8, 8, 8], [10, 10, 10], "not distinguishable"),
    "P first, ratio over the threshold": ([9, 9, 9], [10, 10, 10], "not distinguishable"),
    "P first, median under the threshold": ([9, 7, 7], [10, 10, 10], "faster"),
    "S first, ratio at the threshold": ([10, 10, 10], [8, 8, 8], "not distinguishable"),
    "S never": ([5, 5, 5], [NEVER, NEVER, NEVER], "faster"),
    "S never once": ([5, 5, 5], [10, NEVER, 10], "faster"),
    "S never once, the others near": ([9, 5, 9], [10, NEVER, 10], "not distinguishable"),
    "S never twice, the other near": ([9, 5, 5], [10, NEVER, NEVER], "faster"),
    "P never once": ([5, NEVER, 5], [10, 10, 10], "not distinguishable"),
    "P never": ([NEVER, NEVER, NEVER], [5, 5, 5], "slower"),
    "both never once": ([5, NEVER, 5], [10, NEVER, 10], "not distinguishable"),
    "both never": ([NEVER, NEVER, NEVER], [NEVER, NEVER, NEVER], "not distinguishable"),
    "P broke once": ([5, BROKE, 5], [10, 10, 10], "not distinguishable"),
    "S broke once": ([5, 5, 5], [10, BROKE, 10], "not distinguishable"),
    "four pairs, mean of the middle ratios": ([7, 7, 9.2, 9.2], [10, 10, 10, 10], "not distinguishable"),
    "four pairs, under": ([6.7, 6.7, 9, 9], [10, 10, 10, 10], "faster"),
}


@pytest.mark.parametrize("case", TABLE)
def test_p13_the_rule(case: str) -> None:
    p, s, decision = TABLE[case]
    assert decide_policy(_runs(p), _runs(s), THRESHOLD).decision == decision


@pytest.mark.parametrize(
    ("p_gain", "s_gain", "decision"),
    [(0.3, 0.2, "faster"), (0.2, 0.2, "faster"), (0.19, 0.2, "not distinguishable")],
)
def test_p13_the_final_gain_of_the_faster_arm_is_not_lower(
    p_gain: float, s_gain: float, decision: str
) -> None:
    p = [RunResult(5.0, p_gain)] * 3
    s = [RunResult(10.0, s_gain)] * 3
    assert decide_policy(p, s, THRESHOLD).decision == decision


def test_p13_the_median_of_the_gains_counts_not_the_least() -> None:
    p = [RunResult(5.0, gain) for gain in (0.01, 0.3, 0.3)]
    s = [RunResult(10.0, 0.2)] * 3
    assert decide_policy(p, s, THRESHOLD).decision == "faster"


def test_p13_pairs_name_what_became_of_them() -> None:
    verdict = decide_policy(_runs([5, 5, NEVER, 7]), _runs([10, 5, NEVER, BROKE]), THRESHOLD)
    assert [pair.winner for pair in verdict.pairs] == ["P", "tie", "both-censored", "incomplete"]
    assert [pair.ratio for pair in verdict.pairs] == [0.5, 1.0, None, None]
    assert verdict.median_ratio is None
    assert "no first in pair 2 (tie), 3 (both-censored), 4 (incomplete)" in verdict.reasons[0]


def test_p13_a_censored_run_makes_the_ratio_its_limit() -> None:
    assert decide_policy(_runs([5, 5, 5]), _runs([NEVER, NEVER, 10]), THRESHOLD).median_ratio == 0.0
    assert decide_policy(_runs([NEVER, NEVER, 5]), _runs([5, 5, 5]), THRESHOLD).median_ratio == NEVER


def test_p13_the_reasons_carry_every_figure() -> None:
    reasons = " ".join(decide_policy(_runs([5, 6, 7]), _runs([10, 10, 10]), THRESHOLD).reasons)
    assert "3 of 3 pairs" in reasons
    assert "0.600, under the threshold 0.8" in reasons
    assert "not lower" in reasons


@pytest.mark.parametrize("runs", [([], []), ([5], [5, 5])])
def test_p13_arms_of_unequal_number_are_no_pairs(runs: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ValueError, match="as many runs"):
        decide_policy(_runs(runs[0]), _runs(runs[1]), THRESHOLD)


times = st.one_of(st.none(), st.just(NEVER), st.floats(0.1, 1000.0), st.sampled_from([1.0, 2.0, 4.0]))
run = st.builds(
    lambda time, gain: RunResult(time, None if time is None else gain), times, st.floats(0.0, 0.9)
)
pairs = st.lists(st.tuples(run, run), min_size=1, max_size=7)
MIRROR = {"faster": "slower", "slower": "faster", "not distinguishable": "not distinguishable"}


@given(pairs, st.floats(0.05, 1.0))
def test_p13_the_rule_is_symmetric_in_the_arms(
    rows: list[tuple[RunResult, RunResult]], threshold: float
) -> None:
    p, s = [row[0] for row in rows], [row[1] for row in rows]
    forward = decide_policy(p, s, threshold).decision
    assert decide_policy(s, p, threshold).decision == MIRROR[forward]


@given(pairs, st.floats(0.05, 1.0), st.randoms())
def test_p13_the_order_of_the_pairs_changes_nothing(
    rows: list[tuple[RunResult, RunResult]], threshold: float, chance: random.Random
) -> None:
    mixed = chance.sample(rows, len(rows))
    decisions = {
        decide_policy([row[0] for row in these], [row[1] for row in these], threshold).decision
        for these in (rows, mixed)
    }
    assert len(decisions) == 1


@given(pairs, st.floats(0.05, 0.9))
def test_p13_a_later_run_of_p_never_makes_p_faster(
    rows: list[tuple[RunResult, RunResult]], threshold: float
) -> None:
    p, s = [row[0] for row in rows], [row[1] for row in rows]
    later = [RunResult(None if r.time_s is None else r.time_s * 2, r.final_gain) for r in p]
    if decide_policy(later, s, threshold).decision == "faster":
        assert decide_policy(p, s, threshold).decision == "faster"


@pytest.mark.parametrize(("count", "share"), [(3, 0.125), (5, 0.03125)])
def test_p13_equal_arms_say_faster_as_often_as_the_formula_says(count: int, share: float) -> None:
    chance = random.Random(count)
    pilots = 20_000
    faster = sum(
        decide_policy(
            [RunResult(chance.lognormvariate(0.0, 0.5), 0.2) for _ in range(count)],
            [RunResult(chance.lognormvariate(0.0, 0.5), 0.2) for _ in range(count)],
            1.0,
        ).decision
        == "faster"
        for _ in range(pilots)
    )
    assert equal_arms_say_faster(count) == share
    assert abs(faster / pilots - share) < 4 * (share * (1 - share) / pilots) ** 0.5


def test_p13_a_threshold_only_lowers_that() -> None:
    chance = random.Random(1)
    faster = sum(
        decide_policy(
            [RunResult(chance.lognormvariate(0.0, 0.2), 0.2) for _ in range(3)],
            [RunResult(chance.lognormvariate(0.0, 0.2), 0.2) for _ in range(3)],
            0.8,
        ).decision
        == "faster"
        for _ in range(4000)
    )
    assert faster / 4000 < equal_arms_say_faster(3)


def _runs(times: list[float | None]) -> list[RunResult]:
    return [RunResult(None if time is None else float(time), None if time is None else 0.2) for time in times]
