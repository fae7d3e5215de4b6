"""The verdict table."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundkit.stats.differences import paired_differences
from roundkit.stats.estimate import Estimate, Order, crossover_estimate
from roundkit.stats.guards import GuardResult, absolute_guard, relative_guard
from roundkit.stats.verdict import Gates, order_beyond, smallest_detectable_gain, verdict

GATES = Gates(min_gain=0.01, loss_margin=0.005)
ORDER: list[Order] = ["AB", "BA", "BA", "AB", "AB", "BA"]
BROKEN_GUARD = GuardResult("memory", 0.2, 0.1, ok=False)
KEPT_GUARD = GuardResult("size", 0.0, 0.1, ok=True)


def seen(z_eff: float | None, gain: float, *, n: int = 10, order_z: float = 0.0) -> Estimate:
    """An estimate with the evidence, gain and order effect asked for."""
    base = crossover_estimate([0.01, 0.02] * 5, ["AB", "BA"] * 5)
    return replace(base, n=n, z_eff=z_eff, gain=gain, order_z=order_z, order_effect=order_z * 0.001)


TABLE = [
    (seen(2.0, 0.01), {}, "pass", "gain"),
    (seen(8.0, 0.3), {"guards": [KEPT_GUARD]}, "pass", "gain"),
    (seen(1.999999999, 0.3), {}, "not-measured", "within-noise"),
    (seen(2.0, 0.009999999), {}, "fail", "below-line"),
    (seen(5.0, 0.005), {}, "not-measured", "within-margin"),
    (seen(-2.0, -0.0051), {}, "fail", "regression"),
    (seen(-8.0, -0.005), {}, "not-measured", "within-margin"),
    (seen(-1.9, -0.2), {}, "not-measured", "within-noise"),
    (seen(0.0, 0.0), {}, "not-measured", "within-noise"),
    (seen(0.4, 0.0), {"futile": True}, "not-measured", "futility"),
    (seen(3.0, 0.05), {"guards": [KEPT_GUARD, BROKEN_GUARD]}, "fail", "guard:memory"),
    (seen(0.0, 0.0), {"guards": [BROKEN_GUARD]}, "fail", "guard:memory"),
    (seen(3.0, 0.05), {"validator_ok": False}, "fail", "validator"),
    (seen(3.0, 0.05, n=5), {}, "not-measured", "too-few-pairs"),
    (seen(3.0, 0.05, n=5), {"guards": [BROKEN_GUARD]}, "not-measured", "too-few-pairs"),
    (seen(3.0, 0.05, n=5), {"validator_ok": False}, "fail", "validator"),
    (seen(None, 0.05), {}, "not-measured", "one-order"),
    (None, {}, "not-measured", "no-samples"),
    (None, {"candidate_cause": "candidate-crashed"}, "fail", "candidate-crashed"),
    (None, {"candidate_cause": "candidate-overrun"}, "fail", "candidate-overrun"),
    (None, {"candidate_cause": "candidate-metric"}, "fail", "candidate-metric"),
    (seen(3.0, 0.05), {"candidate_cause": "candidate-clock"}, "fail", "candidate-clock"),
    (seen(3.0, 0.05), {"invalid_cause": "stopped-by-hand"}, "invalid", "stopped-by-hand"),
    (None, {"invalid_cause": "host-memory"}, "invalid", "host-memory"),
    (
        None,
        {"invalid_cause": "host-memory", "candidate_cause": "candidate-crashed"},
        "fail",
        "candidate-crashed",
    ),
    (seen(3.0, 0.05, order_z=2.1), {}, "not-measured", "order"),
    (seen(3.0, 0.05, order_z=-2.000000001), {}, "not-measured", "order"),
    (seen(3.0, 0.05, order_z=2.0), {}, "pass", "gain"),
    (seen(-3.0, -0.05, order_z=2.1), {}, "not-measured", "order"),
    (seen(3.0, 0.05, order_z=2.1), {"guards": [BROKEN_GUARD]}, "fail", "guard:memory"),
    (seen(2.2, 0.05), {"z_boundary": 2.213916}, "not-measured", "within-noise"),
    (seen(2.213916, 0.05), {"z_boundary": 2.213916}, "pass", "gain"),
]


@pytest.mark.parametrize(("estimate", "given_", "word", "reason"), TABLE)
def test_m03_table(estimate: Estimate | None, given_: dict[str, object], word: str, reason: str) -> None:
    decision = verdict(estimate, GATES, **given_)  # type: ignore[arg-type]
    assert (decision.verdict, decision.reason) == (word, reason)


def test_m02_an_order_effect_withholds_the_verdict_and_says_which() -> None:
    decision = verdict(seen(3.0, 0.05, order_z=2.5), GATES)
    assert (decision.order_beyond, decision.otherwise) == (True, "pass")
    small = Gates(min_gain=0.01, loss_margin=0.005, order_margin=0.01)
    assert verdict(seen(3.0, 0.05, order_z=2.5), small).verdict == "pass"
    assert order_beyond(crossover_estimate([0.1], ["AB"])) is None


@pytest.mark.parametrize("n", range(2, 51))
def test_m03_fault_14_one_gain_among_zeros_never_decides(n: int) -> None:
    order: list[Order] = [("AB", "BA")[k % 2] for k in range(n)]
    for m in (0.1, 1 / 3, 0.7):
        for turn in (1, -1):
            decision = verdict(crossover_estimate([turn * m] + [0.0] * (n - 1), order), GATES)
            assert decision.verdict == "not-measured"
            assert decision.reason == ("too-few-pairs" if n < 6 else "within-noise")


def test_m03_ties_at_the_edge_of_the_gates() -> None:
    """A gain of exactly the line passes, whichever floats it was computed from."""
    for scale in (1.0, 0.1, 1 / 3, 7e5, 1e-7):
        for gain in (0.01, 0.02, 0.003, 0.07):
            d = paired_differences([100 * scale] * 6, [100 * scale * (1 - gain)] * 6, "lower")
            gates = Gates(min_gain=gain, loss_margin=0.0)
            assert verdict(crossover_estimate(d, ORDER), gates).verdict == "pass"
            loss = paired_differences([100 * scale] * 6, [100 * scale * (1 + gain)] * 6, "lower")
            at_margin = Gates(min_gain=0.5, loss_margin=gain)
            assert verdict(crossover_estimate(loss, ORDER), at_margin).reason == "within-margin"


def test_m03_deterministic_instrument() -> None:
    """No variance: a comment is no change, and the margins decide both ways."""
    base = [1_609_112_405.0] * 6
    for factor, word in (
        (1 - 5e-5, "not-measured"),
        (1 + 7e-4, "not-measured"),
        (0.95, "pass"),
        (1.02, "fail"),
    ):
        d = paired_differences(base, [b * factor for b in base], "lower")
        assert verdict(crossover_estimate(d, ORDER), GATES).verdict == word


@pytest.mark.parametrize("direction", ["lower", "higher"])
def test_m03_sign_and_direction(direction: str) -> None:
    fast, slow = [9.0, 9.1, 9.05, 9.0, 9.1, 9.05], [10.0, 10.1, 10.05, 10.1, 10.0, 10.05]
    better, worse = (fast, slow) if direction == "lower" else (slow, fast)
    up = paired_differences(worse, better, direction)  # type: ignore[arg-type]
    down = paired_differences(better, worse, direction)  # type: ignore[arg-type]
    assert verdict(crossover_estimate(up, ORDER), GATES).verdict == "pass"
    assert verdict(crossover_estimate(down, ORDER), GATES).reason == "regression"


@given(st.lists(st.integers(-60, 60), min_size=1, max_size=24), st.floats(0, 0.05), st.floats(0, 0.05))
@settings(max_examples=150, deadline=None)
def test_m03_a_pass_has_everything_it_needs(d: list[int], min_gain: float, margin: float) -> None:
    order: list[Order] = [("AB", "BA")[k % 2] for k in range(len(d))]
    found = crossover_estimate([v / 1000 for v in d], order)
    decision = verdict(found, Gates(min_gain=min_gain, loss_margin=margin))
    if decision.verdict == "pass":
        assert found.n >= 6 and found.z_eff >= 2 and found.gain >= min_gain and not decision.order_beyond
    if decision.verdict == "fail":
        assert abs(found.z_eff) >= 2 and abs(found.gain) > margin
    assert decision.reason
    for number in (decision.z_eff, decision.gain, decision.mde):
        assert number is None or math.isfinite(number)


def test_smallest_detectable_gain() -> None:
    sigma = 0.03
    found = smallest_detectable_gain(math.sqrt(2) * sigma, 20)
    assert found == pytest.approx(1 - math.exp(-2.8416 * math.sqrt(2) * sigma / math.sqrt(20)), abs=1e-5)
    assert smallest_detectable_gain(None, 1) is None


@pytest.mark.parametrize("wrong", [{"min_gain": math.nan}, {"loss_margin": -0.1}, {"min_pairs": 5}])
def test_wrong_gates_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Gates(**{"min_gain": 0.01, "loss_margin": 0.0, **wrong})  # type: ignore[arg-type]


def test_a_cause_names_whose_it_is() -> None:
    with pytest.raises(ValueError, match="candidate-"):
        verdict(None, GATES, candidate_cause="crashed")
    with pytest.raises(ValueError, match="never invalid"):
        verdict(None, GATES, invalid_cause="candidate-crashed")


def test_m03_guards() -> None:
    base, worse = [100.0, 200.0, 300.0], [105.0, 210.0, 315.0]
    assert relative_guard("memory", base, worse, "lower", 0.05).ok
    assert not relative_guard("memory", base, worse, "lower", 0.049).ok
    assert relative_guard("rate", base, worse, "higher", 0.0).ok
    assert not relative_guard("rate", worse, base, "higher", 0.04).ok
    assert relative_guard("errors", [0.0] * 3, [0.0] * 3, "lower", 0.0) == GuardResult(
        "errors", 0.0, 0.0, ok=True
    )
    assert relative_guard("errors", [0.0] * 3, [1.0] * 3, "lower", 9.0) == GuardResult(
        "errors", None, 9.0, ok=False
    )
    assert absolute_guard("memory", [10.0, 12.0], "lower", 11.0).ok
    assert not absolute_guard("accuracy", [0.9, 0.9], "higher", 0.95).ok
    for values in ([], [math.nan], [-1.0]):
        with pytest.raises(ValueError, match="guard memory"):
            absolute_guard("memory", values, "lower", 1.0)
