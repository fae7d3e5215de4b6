"""Evidence as frames: declared columns, nulls that stay null, charts that carry their rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import pytest
from support.sample.lanes import NO_GAIN_LANES
from support.sample_evidence import export_sample, sample_round

from roundkit.analysis import TABLES, Ledgers, charts, check_frame, load
from roundkit.analysis.columns import schema_of
from roundkit.core.errors import Refused


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("frames")
    export_sample(base / "rounds" / "r01", sample_round(), base / "scratch")
    export_sample(base / "rounds" / "r02", sample_round(NO_GAIN_LANES, round_id="r02"), base / "scratch")
    return base / "rounds"


@pytest.fixture(scope="module")
def ledgers(root: Path) -> Ledgers:
    return load(root)


def test_rounds_of_one_name_in_two_campaigns_are_drawn_apart(tmp_path: Path) -> None:
    for campaign in ("one", "two"):
        sample = sample_round(campaign_id=campaign)
        export_sample(tmp_path / "rounds" / campaign, sample, tmp_path / "scratch")
    both = load(tmp_path / "rounds")
    alone = both.only("one")

    def drawn(ledgers: Ledgers) -> list[alt.LayerChart]:
        return [
            charts.device_timeline(ledgers.devices),
            charts.budget_burn(ledgers.attempts),
            charts.composition_chain(ledgers.compositions),
            charts.interaction_ratios(ledgers.compositions),
            charts.branch_layout(ledgers.lanes, ledgers.tickets),
        ]

    for field, chart, single in zip(
        ("device", "budget", "step", "step", "_label"), drawn(both), drawn(alone), strict=True
    ):
        names = [row[field] for row in rows_in(single)]
        shown = [row[field] for row in rows_in(chart)]
        assert len(set(shown)) == 2 * len(set(names)), field
        assert chart.to_dict()["height"] == 2 * single.to_dict()["height"] or field == "step", field
    used = charts.device_timeline(alone.devices).to_dict()["title"]["subtitle"].partition("in use: ")[2]
    said = charts.device_timeline(both.devices).to_dict()["title"]["subtitle"]
    for device in used.split(", "):
        assert all(f"{campaign} · r01 · {device}" in said for campaign in ("one", "two"))
    assert max(row["to_percent"] for row in rows_in(charts.budget_burn(both.attempts))) <= 100
    checks = rows_in(charts.aa_history(both.aa_checks))
    assert [row["round"] for row in checks] == sorted(row["round"] for row in checks)


def every_chart(ledgers: Ledgers) -> dict[str, Callable[[], alt.LayerChart]]:
    experiment = ledgers.trials.collect()["experiment"][0]
    return {
        "gains": lambda: charts.gains(ledgers.tickets, min_gain=0.01),
        "raw samples": lambda: charts.raw_samples(ledgers.trials, experiment, unit="ms"),
        "chain": lambda: charts.composition_chain(ledgers.compositions),
        "ratios": lambda: charts.interaction_ratios(ledgers.compositions),
        "rerun": lambda: charts.ticket_against_rerun(ledgers.rounds),
        "budgets": lambda: charts.budget_burn(ledgers.attempts),
        "A/A": lambda: charts.aa_history(ledgers.aa_checks),
        "devices": lambda: charts.device_timeline(ledgers.devices),
        "wait": lambda: charts.queue_wait(ledgers.tickets, ledgers.devices),
    }


def rows_in(chart: alt.LayerChart) -> list[dict[str, Any]]:
    (rows,) = chart.to_dict()["datasets"].values()
    return list(rows)


@pytest.mark.parametrize("table", TABLES)
def test_every_frame_has_its_declared_columns(ledgers: Ledgers, table: str) -> None:
    frame: pl.LazyFrame = getattr(ledgers, table)
    assert dict(frame.collect_schema()) == schema_of(table)
    assert frame.collect().height > 0
    assert list(ledgers.to_pandas(table).columns) == list(schema_of(table))


def test_rounds_come_oldest_first_and_name_no_folder_above(ledgers: Ledgers, root: Path) -> None:
    rounds = ledgers.rounds.collect()
    assert rounds["source"].to_list() == ["r02", "r01"] or rounds["source"].to_list() == ["r01", "r02"]
    assert rounds["closed_utc"].is_sorted()
    assert str(root) not in str(rounds.to_dicts())


def test_a_glob_and_a_list_are_places_too(root: Path) -> None:
    assert len(load(f"{root}/r*1").sources) == 1
    assert len(load([root / "r01", root / "r02", root]).sources) == 2
    with pytest.raises(Refused, match="no evidence"):
        load(root / "r01" / "blobs")


def test_missing_unknown_and_mistyped_columns_are_named_together() -> None:
    frame = pl.DataFrame({"campaign": ["demo"], "number": ["one"], "colour": ["red"]})
    with pytest.raises(Refused) as refused:
        check_frame("aa_checks", frame)
    assert {refusal.code for refusal in refused.value.refusals} == {
        "missing-columns",
        "unknown-columns",
        "wrong-dtype",
    }
    assert "cusum" in str(refused.value)


def test_n10_what_was_not_measured_is_null_with_a_reason(ledgers: Ledgers) -> None:
    tickets = ledgers.tickets.collect()
    unmeasured = tickets.filter(pl.col("gain").is_null())
    assert unmeasured.height == 3
    assert unmeasured["missing"].null_count() == 0
    assert tickets.filter(pl.col("gain").is_not_null())["missing"].null_count() == tickets.height - 3
    rounds = ledgers.rounds.filter(pl.col("round") == "r02").collect()
    assert rounds["gain"].to_list() == [None]
    assert rounds["missing"].to_list() == ["no ticket passed"]


def test_n10_charts_write_the_reason_instead_of_drawing_a_zero(ledgers: Ledgers) -> None:
    rows = [row for row in rows_in(charts.gains(ledgers.tickets)) if row["gain_percent"] is None]
    assert {row["missing"] for row in rows} == {
        "rejected: protected-path",
        "rejected: build",
        "fail: candidate-crashed",
    }
    rows = rows_in(charts.ticket_against_rerun(ledgers.rounds))
    assert [row["missing"] for row in rows if row["round"] == "r02"] == ["no ticket passed"] * 2


@pytest.mark.parametrize(
    "name", ["gains", "raw samples", "chain", "ratios", "rerun", "budgets", "A/A", "devices", "wait"]
)
def test_every_chart_repeats_and_says_what_it_shows(ledgers: Ledgers, name: str) -> None:
    make = every_chart(ledgers)[name]
    first, second = (json.dumps(make().to_dict(), sort_keys=True) for _ in range(2))
    assert first == second
    spec = json.loads(first)
    assert spec["title"]["text"]
    assert spec["title"]["subtitle"]
    assert spec["description"]


def test_gains_are_multiplied_along_a_chain_and_never_across_chains(ledgers: Ledgers) -> None:
    one = ledgers.rounds.filter(pl.col("round") == "r01").collect()
    gain = one["gain"][0]
    day = pl.duration(days=1)
    links = [("a1", None, "A1"), ("b1", None, "B1"), ("a2", "A1", "A2"), ("c9", "gone", "C9")]
    rounds = pl.concat(
        one.with_columns(
            round=pl.lit(name), previous=pl.lit(previous, pl.String), evidence_digest=pl.lit(digest),
            closed_utc=pl.col("closed_utc") + number * day,
        )
        for number, (name, previous, digest) in enumerate(links)
    )  # fmt: skip
    rows = rows_in(charts.rounds_over_time(rounds.lazy()))
    factors = {row["round"]: (row["chain"], row["factor"]) for row in rows if row["round"] != "I0"}
    alone, together = (pytest.approx((1 - gain) ** -power, abs=1e-3) for power in (1, 2))
    assert factors == {
        "a1": ("demo a1", alone), "a2": ("demo a1", together), "b1": ("demo b1", alone),
        "c9": ("demo c9", alone),
    }  # fmt: skip
    assert sum(row["round"] == "I0" for row in rows) == 3
    (row,) = [row for row in rows_in(charts.rounds_over_time(one.lazy())) if row["round"] == "r01"]
    assert row["chain"] == "demo"


def test_n10_an_attempt_that_was_never_settled_has_no_cost_and_a_reason(ledgers: Ledgers) -> None:
    lost = ledgers.attempts.filter(pl.col("phase") == "claimed").collect()
    assert lost["actual_micro_usd"].to_list() == [None, None]
    assert set(lost["missing"]) == {"claimed, never settled"}
    assert lost["charged_micro_usd"].to_list() == [1_000_000, 1_000_000]
    lanes = ledgers.lanes.filter(pl.col("round") == "r01").collect()
    costs = dict(zip(lanes["lane"], lanes["cost_micro_usd"], strict=True))
    assert costs == {"L1": 400_000, "L2": 400_000, "L3": 400_000, "L4": None}
    bars = [
        row for row in rows_in(charts.budget_burn(ledgers.attempts)) if row["budget"] == "r01 · L4 · money"
    ]
    assert [(row["from_percent"], row["to_percent"]) for row in bars] == [(0, 33.333), (33.333, 66.667)]


def test_charts_of_nothing_are_drawn(ledgers: Ledgers) -> None:
    for table, draw in {
        "tickets": charts.gains,
        "compositions": charts.composition_chain,
        "rounds": charts.ticket_against_rerun,
        "attempts": charts.budget_burn,
        "aa_checks": charts.aa_history,
        "devices": charts.device_timeline,
    }.items():
        chart = draw(getattr(ledgers, table).head(0))
        assert rows_in(chart) == [], table
        assert chart.to_dict()["title"]["subtitle"], table


def test_fault_30_many_tickets_are_summed_up_and_the_chart_says_so(ledgers: Ledgers) -> None:
    one = ledgers.tickets.filter(pl.col("gain").is_not_null()).collect()
    many = pl.concat([one] * 500)
    chart = charts.gains(many.lazy())
    assert len(rows_in(chart)) <= one["lane"].n_unique()
    assert f"{many.height} tickets summed up by lane" in chart.to_dict()["title"]["subtitle"]
