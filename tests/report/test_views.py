"""Parts of the page, each from evidence of another shape."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import pytest
from support.sample.lanes import NO_GAIN_LANES, Lane, Submission
from support.sample_evidence import export_sample, sample_round

from roundkit import analysis, report
from roundkit.analysis.charts import theme
from roundkit.audit import audit_round
from roundkit.core.resources import shipped
from roundkit.evidence import RoundEvidence, open_evidence
from roundkit.report.markup import number, ratio
from roundkit.report.views import Heading, Missing, Table

ROOT = Path(__file__).resolve().parents[2]


def opened(tmp_path: Path, **options: Any) -> RoundEvidence:
    return open_evidence(export_sample(tmp_path / "r01", sample_round(**options), tmp_path / "scratch"))


def test_n12_no_passing_ticket(tmp_path: Path) -> None:
    evidence = opened(tmp_path, lanes=NO_GAIN_LANES)
    page = report.headline(evidence).markup
    assert "The incumbent stays" in page
    assert "None of 2 tickets showed a gain" in page
    assert "<dd>none</dd>" in page
    assert "nothing was rerun" in report.composition_table(evidence).to_html()


def test_n12_one_lane(tmp_path: Path) -> None:
    evidence = opened(tmp_path, lanes=(Lane("solo", (Submission(0.1),)),))
    assert "It holds lane solo." in report.headline(evidence).markup


@pytest.mark.parametrize("direction", ["lower", "higher"])
def test_the_headline_says_how_much_the_metric_itself_changed(tmp_path: Path, direction: str) -> None:
    evidence = opened(tmp_path, lanes=(Lane("solo", (Submission(0.2),)),), direction=direction)
    assert audit_round(evidence.path).passed
    verdict = evidence.ledger.rerun[0].verdict
    assert verdict.baseline_median is not None
    assert verdict.candidate_median is not None
    assert verdict.delta is not None
    change = abs(verdict.candidate_median / verdict.baseline_median - 1)
    assert change == pytest.approx(0.2 if direction == "lower" else 0.25, abs=0.01)
    exact = math.expm1(verdict.delta) if direction == "higher" else -math.expm1(-verdict.delta)
    shown = report.headline(evidence).text
    assert shown.startswith(f"New incumbent: {100 * exact:.1f}\u202f% {direction} latency_ms")
    assert ("more than before" in shown) is (direction == "higher")


def test_n12_sixty_four_lanes(tmp_path: Path) -> None:
    lanes = tuple(Lane(f"L{number:02}", (Submission(0.0),)) for number in range(64))
    evidence = opened(tmp_path, lanes=lanes)
    assert len(report.decision_table(evidence).rows) == 64
    assert audit_round(evidence.path).passed


def test_n12_a_rerun_that_does_not_confirm(tmp_path: Path) -> None:
    lanes = (Lane("solo", (Submission(0.1),)),)
    evidence = opened(tmp_path, lanes=lanes, rerun_gain=0.0)
    text = report.headline(evidence).text
    assert "The incumbent stays" in text
    assert "A gain that a fresh measurement does not confirm is not kept." in text


@pytest.mark.parametrize(("provenance", "named"), [("scripted", True), ("replay", True), ("model", False)])
def test_anything_but_a_model_is_named_in_the_headline(tmp_path: Path, provenance: str, named: bool) -> None:
    evidence = opened(tmp_path, lanes=NO_GAIN_LANES, provenance=provenance)
    assert ("rk-provenance" in report.headline(evidence).markup) is named


def test_a_forgeable_benchmark_is_labelled(tmp_path: Path) -> None:
    notes = report.measurement_notes(opened(tmp_path, lanes=NO_GAIN_LANES, forgeable=True))
    assert "Reported, forgeable" in notes.markup


def test_m13_counted_figures_never_stand_without_what_they_leave_out(tmp_path: Path) -> None:
    evidence = opened(tmp_path, counted=True)
    leaves_out = "nothing about caches, I/O, waiting or the GPU"
    shown = [report.headline(evidence), report.measurement_notes(evidence)]
    tables = [
        report.decision_table(evidence),
        report.all_tickets(evidence),
        report.composition_table(evidence),
    ]
    for part in (*shown, *tables):
        assert leaves_out in (part.to_html() if isinstance(part, Table) else part.markup)
    notes = report.measurement_notes(evidence).markup
    assert "valgrind, Valgrind-3.19.0" in notes
    assert "forgeable" in notes
    for ticket in evidence.ledger.tickets:
        if ticket.verdict is not None and ticket.verdict.pairs:
            assert leaves_out in ticket.verdict.sentence
            assert ticket.verdict.forgeable
    plain = opened(tmp_path / "plain")
    assert leaves_out not in report.headline(plain).markup


def test_n10_a_missing_value_is_never_a_number() -> None:
    table = Table("gains", (Heading("gain", "percent"),), ((Missing("deadline"),), (None,), (0.0,)))
    cells = table.to_html().split("<tbody>")[1]
    assert "missing: deadline" in cells
    assert cells.count("data-sort") == 1
    assert 'data-sort="0.0">0.00' in cells


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1180, "1,180"), (2446.1, "2,446"), (12345.6, "12,346"), (999.96, "1,000"), (844.81, "844.8"),
        (-2520.4, "−2,520"), (0.6312, "0.6312"), (2**60, f"{2**60:,}"), (math.inf, "inf"),
    ],
)  # fmt: skip
def test_a_number_has_its_thousands_apart_and_no_exponent(value: float, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(-0.002098, "−0.002"), (0.63124, "0.631"), (-0.0001, "0")])
def test_a_ratio_near_zero_has_no_digits_that_say_nothing(value: float, shown: str) -> None:
    assert number(ratio(value)) == shown


def test_a_column_is_called_by_words_with_its_unit() -> None:
    frame = pl.DataFrame(
        {
            "ran_s": [1.5],
            "swap_used_bytes": [1],
            "closed_utc": [datetime(2026, 3, 2, tzinfo=UTC)],
            "wait_ms": [2],
        }
    )
    markup = report.frame_table("times", frame).to_html()
    for name in ("ran (s)", "swap used (bytes)", "closed", "wait (ms)"):
        assert f">{name}</th>" in markup


def test_a_gain_is_the_same_figure_in_a_chart_and_in_a_table() -> None:
    """Rounded to a thousandth first, this one was 12.12 below its chart, and 12.11 everywhere else."""
    gain = pl.DataFrame({"gain": [0.12114653]}).select(theme.percent(pl.col("gain"))).item()
    assert number(gain) == "12.11"


def test_an_audit_counts_one_thing_in_the_singular(tmp_path: Path) -> None:
    evidence = opened(tmp_path, lanes=(Lane("solo", (Submission(0.1),)),))
    details = [check.detail for check in audit_round(evidence.path).checks]
    assert {"1 lane", "1 step", "1 submitted file"} <= set(details)
    assert [detail for detail in details if re.match(r"1 \w+s\b", detail)] == []


def test_a_chart_of_one_check_is_described_in_the_singular() -> None:
    frames = analysis.load(ROOT / "evidence/code-search/rounds/r01")
    assert analysis.charts.aa_history(frames.aa_checks).to_dict()["description"].startswith("1 check of")


def test_an_experiment_without_a_pair_says_so_in_its_schedule() -> None:
    table = report.schedules_again(open_evidence(ROOT / "evidence/code-search/rounds/r01")).table
    orders = {row[0]: row[2] for row in table.rows}
    assert orders["r01-L8-01193376.1"] is None
    assert orders["r01-L2-554730d2.1"] == "ABABAB"


def test_n05_cells_are_escaped_and_control_characters_shown() -> None:
    table = Table("<b>", (Heading("<i>"),), (("<script>\x1b[31m\u202egnp.exe",),))
    markup = table.to_html()
    assert "<script>" not in markup
    assert "\\x1b[31m\\u202egnp.exe" in markup
    assert "&lt;b&gt;" in markup


def test_times_sort_as_times() -> None:
    moments = (datetime(2026, 3, 2, 9, tzinfo=UTC), datetime(2026, 3, 2, 10, tzinfo=UTC))
    table = Table("times", (Heading("when", "time"),), tuple((moment,) for moment in moments))
    assert "2026-03-02 09:00:00 UTC" in table.to_html()
    assert 'data-sort="1772442000.000000"' in table.to_html()


def test_a_chart_without_a_description_is_no_figure() -> None:
    with pytest.raises(ValueError, match="description"):
        report.figure(alt.layer(alt.Chart(alt.InlineData(values=[{"a": 1}])).mark_point()))


def test_the_pages_dark_colours_know_the_charts_neutral_ones() -> None:
    style = (shipped("templates") / "report" / "style.css").read_text()
    for colour in (theme.INK, theme.MUTED, theme.GRID, theme.BLUE, theme.ORANGE):
        assert f'="{colour}"]' in style
