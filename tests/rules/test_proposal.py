"""Gates proposed from a benchmark's noise."""

from __future__ import annotations

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
        (0.004, 12, 0.01, "With 12 pairs a gain of 0.4 % or more shows"),
        (0.01, 12, 0.01, "With 12 pairs a gain of 1 % or more shows"),
        # 12 · 1.5² = 27 pairs, and pairs come in twos.
        (0.015, 28, 0.01, "With 28 pairs a gain of 0.98 % or more shows"),
        # 12 · 10² = 1200 pairs are too many; 40 show 0.1 · √(12/40) = 5.48 %, and the line is above it.
        (0.1, 40, 0.055, "To keep gains of 1 % either allow 1200 pairs"),
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
    assert (proposal.ab_ba_pairs, proposal.min_gain, proposal.detectable) == (12, 0.01, None)
    assert "unknown" in proposal.words[0]


@given(st.floats(1e-5, 0.9), st.floats(1e-4, 0.5), st.integers(3, 40), st.integers(20, 200))
def test_what_is_proposed_can_be_seen(detectable: float, min_gain: float, half: int, half_most: int) -> None:
    proposal = propose_gates(noise(detectable), pairs=2 * half, min_gain=min_gain, most_pairs=2 * half_most)
    assert proposal.ab_ba_pairs % 2 == 0
    assert proposal.detectable is not None
    assert proposal.detectable <= proposal.min_gain * (1 + 1e-9)
    assert proposal.min_gain >= min_gain
