"""M12: which gates a benchmark's noise would bear, in words."""

from __future__ import annotations

import pytest

from roundkit.models.comparison import InstrumentNoise, PairsNeeded
from roundkit.rules.noise import gates_in_words, noise_block, unread


def found(detectable: float, pairs: int) -> InstrumentNoise:
    return InstrumentNoise(
        instrument="wall", unit="ms", pairs=20, median=5.0, sigma=0.0123456,
        needed=(PairsNeeded(gain=0.01, pairs=pairs),),
        detectable=detectable, detectable_planned=detectable, planned_pairs=12,
    )  # fmt: skip


def test_m12_a_noisy_benchmark_is_offered_a_higher_line_or_more_pairs() -> None:
    assert gates_in_words(found(0.0231, 64), 0.01) == (
        "wall: with 12 pairs this benchmark shows a gain of 2.3 % or more; propose min_gain: 0.017 with"
        " ab_ba_pairs: 12, or ab_ba_pairs: 64 to see 1 %"
    )


def test_m12_a_quiet_benchmark_bears_the_gates_of_the_template() -> None:
    assert "ab_ba_pairs: 12 and min_gain: 0.01 hold" in gates_in_words(found(0.004, 6), 0.01)


def test_m12_an_instrument_without_figures_says_why_and_gives_no_block() -> None:
    missing = unread("cpu", "ms", "this host gives no reading", 12)
    assert gates_in_words(missing, 0.01) == "cpu: this host gives no reading"
    assert noise_block(missing, machine="any", date="2026-01-01", trial_s=0.1) is None


def test_m12_the_block_is_rounded_to_what_it_can_tell() -> None:
    block = noise_block(found(0.02, 6), machine="any", date="2026-01-01", trial_s=0.123456)
    assert block is not None
    assert (block.sigma, block.trial_s) == (pytest.approx(0.01235), pytest.approx(0.1235))
