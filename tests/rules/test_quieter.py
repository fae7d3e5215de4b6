"""CPU time beside wall-clock time: when a person is told of it, and what it leaves out."""

from __future__ import annotations

import pytest

from roundkit.models.comparison import InstrumentNoise
from roundkit.models.instruments import Instrument
from roundkit.rules.quieter import quieter_clock


def noise(instrument: Instrument, detectable: float | None, median: float | None = 100.0) -> InstrumentNoise:
    return InstrumentNoise(
        instrument=instrument, unit="ms", pairs=12, median=median, detectable_planned=detectable,
        planned_pairs=12,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("wall", "cpu", "said"),
    [
        (0.08, 0.01, True),
        (0.08, 0.04, True),
        (0.08, 0.041, False),
        # What is worth keeping shows anyway.
        (0.01, 0.001, False),
        (0.08, 0.0, True),
        (None, 0.01, False),
        (0.08, None, False),
    ],
)
def test_a_clock_is_named_where_it_shows_half_of_what_the_other_shows(
    wall: float | None, cpu: float | None, said: bool
) -> None:
    rows = (noise("wall", wall), noise("cpu", cpu))
    assert (quieter_clock(rows, "wall", min_gain=0.01) is not None) == said


@pytest.mark.parametrize("decides", ["reported", "cpu", "instructions"])
def test_beside_another_instrument_nothing_is_said(decides: Instrument) -> None:
    rows = (noise("wall", 0.08), noise("cpu", 0.01), noise(decides, 0.08))
    assert quieter_clock(rows, decides, min_gain=0.01) is None
    assert quieter_clock(rows[:1], "wall", min_gain=0.01) is None


@pytest.mark.parametrize(
    ("cpu_ms", "said"),
    [
        (62.0, "here 38 % of the time. "),
        (100.4, "here 0 % of the time. "),
        (312.0, "here 3.1 cores worked at once. "),
    ],
)
def test_the_words_hold_both_figures_and_what_is_left_out(cpu_ms: float, said: str) -> None:
    quieter = quieter_clock((noise("wall", 0.083), noise("cpu", 0.0091, cpu_ms)), "wall", min_gain=0.01)
    assert quieter is not None
    figures, meaning = quieter.words()
    assert "with 12 pairs `cpu` shows a gain of 0.91 % or more" in figures
    assert "`wall` one of 8.3 % or more" in figures
    assert said in meaning
    assert "waiting" in meaning
    assert "is no gain under it" in meaning
