"""Every chart of frames without rows says that there is nothing to show, and draws no empty axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl
import pytest
import vl_convert

from roundkit.analysis import charts
from roundkit.analysis.catalog import FRAMES
from roundkit.analysis.columns import Column
from roundkit.report.views import figure

TAKES: Mapping[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "aa_history": (("aa_checks",), {}),
    "banked_by_wave": (("waves",), {}),
    "branch_layout": (("lanes", "tickets"), {}),
    "budget_burn": (("attempts",), {}),
    "composition_chain": (("compositions",), {}),
    "device_timeline": (("devices",), {}),
    "fleet": (("wave_shards", "waves"), {}),
    "gain_distribution": (("tickets",), {}),
    "gains": (("tickets",), {"min_gain": 0.01}),
    "interaction_ratios": (("compositions",), {}),
    "pilot_calls": (("pilot_tuples",), {}),
    "pilot_outcomes": (("pilot_tuples",), {}),
    "queue_wait": (("tickets", "devices"), {}),
    "raw_samples": (("trials",), {"experiment": "e-1", "unit": "ms"}),
    "refusals_by_source": (("wave_minutes",), {}),
    "reject_reasons": (("wave_rejects",), {}),
    "rounds_over_time": (("rounds",), {}),
    "runs_and_bounds": (("policy_runs",), {"serial_s": None, "parallel_s": None}),
    "throughput_by_workers": (("waves",), {}),
    "ticket_against_rerun": (("rounds",), {}),
    "time_to_target": (("policy_curve",), {}),
    "verdict_counts": (("tickets",), {}),
}
EAGER = {"runs_and_bounds", "time_to_target"}


def without_rows(columns: tuple[Column, ...], *, eager: bool) -> pl.DataFrame | pl.LazyFrame:
    frame = pl.DataFrame(schema={column.name: column.dtype for column in columns})
    return frame if eager else frame.lazy()


def test_every_chart_of_frames_is_in_the_table() -> None:
    assert set(charts.__all__) - set(TAKES) == {"pair_gains"}, "which takes a comparison, never an empty one"


@pytest.mark.parametrize("name", TAKES)
def test_a_chart_without_rows_says_that_there_is_nothing_to_show(name: str) -> None:
    tables, options = TAKES[name]
    frames = [without_rows(FRAMES[table], eager=name in EAGER) for table in tables]
    chart: alt.LayerChart = getattr(charts, name)(*frames, **options)
    drawn = chart.to_dict()
    said = f"{drawn['title']['text']}: nothing to show."
    assert figure(chart).table.to_html() == f'<p class="rk-empty">{said}</p>'
    for words in (drawn["title"]["subtitle"], drawn["description"]):
        assert not [odd for odd in ("None", "nan", ": .", "; ;", ". .", ", .") if odd in words], words
    picture = vl_convert.vegalite_to_svg(drawn)
    assert ">nothing to show<" in picture
    assert "Infinity" not in picture
    assert "role-axis" not in picture
