"""Gates proposed from a benchmark's noise."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundkit.models.comparison import InstrumentNoise
from roundkit.rules.proposal import propose_gates


def noise(detectable: float | None) -> InstrumentNoise:
    return InstrumentNoise(
        instrument="wall", unit="ms", pairs=12, detectable_planned=detectable, planned_pairs=12,
        missing=None if detectable is not None else "the benchmark exits with 3",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("detectable", "pairs", "min_gain", "words"),
    [
        # The line is above the noise, so that it decides: 1 % and 0.84 standard errors.
        (0.004, 12, 0.01, "With 12 pairs a gain of 1.1 % or more passes"),
        (0.01, 12, 0.01, "With 12 pairs a gain of 1.3 % or more passes"),
        # 12 · (ln 0.985 / ln 0.99)² = 27.1 pairs, and pairs come in twos.
        (0.015, 28, 0.01, "With 28 pairs a gain of 1.3 % or more passes"),
        # 1320 pairs are too many. 40 show 5.61 %, and two standard errors of theirs are 3.98 %.
        (0.1, 40, 0.04, "With 40 pairs a gain of 5.6 % or more passes"),
        (0.1, 40, 0.04, "For gains of 1 % to show as often either allow 1320 pairs"),
        # 40 pairs show 1.3 % only, but an estimate of 1 % is beyond two of their standard errors.
        (0.0235, 40, 0.01, "With 40 pairs a gain of 1.4 % or more passes"),
    ],
)
def test_pairs_grow_before_the_line_is_raised(
    detectable: float, pairs: int, min_gain: float, words: str
) -> None:
    proposal = propose_gates(noise(detectable), pairs=12, min_gain=0.01, most_pairs=40)
    assert (proposal.ab_ba_pairs, proposal.min_gain) == (pairs, min_gain)
    assert words in " ".join(proposal.words)


@pytest.mark.parametrize("unknown", [None, noise(None)])
def test_unknown_noise_changes_no_gate_and_says_so(unknown: InstrumentNoise | None) -> None:
    proposal = propose_gates(unknown, pairs=12, min_gain=0.01, most_pairs=40)
    assert (proposal.ab_ba_pairs, proposal.min_gain, proposal.passes) == (12, 0.01, None)
    assert "unknown" in proposal.words[0]


@given(st.floats(1e-4, 0.9), st.floats(1e-4, 0.5), st.integers(3, 40), st.integers(20, 200))
def test_the_gain_that_is_promised_passes_both_gates_in_four_of_five(
    detectable: float, min_gain: float, half: int, half_most: int
) -> None:
    proposal = propose_gates(noise(detectable), pairs=2 * half, min_gain=min_gain, most_pairs=2 * half_most)
    assert proposal.ab_ba_pairs % 2 == 0
    assert proposal.passes is not None
    assert min_gain <= proposal.min_gain <= proposal.passes
    error = -math.log1p(-detectable) / (2 + 0.8416) * math.sqrt(2 * half / proposal.ab_ba_pairs)
    needed = max(2 * error, -math.log1p(-proposal.min_gain))
    power = NormalDist().cdf((-math.log1p(-proposal.passes) - needed) / error)
    assert power == pytest.approx(0.8, abs=0.01)
    # An estimate at the line is evidence: nothing that the line lets through is lost to the noise.
    assert -math.log1p(-proposal.min_gain) >= 2 * error * (1 - 1e-3)


def test_a_benchmark_that_shows_nothing_still_gets_gates() -> None:
    proposal = propose_gates(noise(1.0), pairs=12, min_gain=1.0, most_pairs=40)
    assert proposal.min_gain == 1.0
    assert propose_gates(noise(1.0), pairs=12, min_gain=0.01, most_pairs=6).min_gain == 0.999
