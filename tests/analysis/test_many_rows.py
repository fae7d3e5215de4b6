"""Fault 30: above 5,000 rows every chart sums up, drops nothing, and says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl
import pytest
from support.sample_evidence import export_sample, sample_round

from roundkit.analysis import Ledgers, charts, load

COPIES = 12_000


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> Ledgers:
    base = tmp_path_factory.mktemp("many")
    return load(export_sample(base / "r01", sample_round(), base / "scratch"))


def many(frame: pl.LazyFrame, **columns: pl.Expr) -> pl.LazyFrame:
    """Return so many copies of a frame's rows, each in a round of its own, in order of time."""
    number = pl.int_range(pl.len(), dtype=pl.Int64)
    rows = frame.collect()
    copied = pl.concat([rows] * -(-COPIES // rows.height))
    return copied.with_columns(**columns or {"round": pl.format("r{}", number)}).lazy()


NUMBER = pl.int_range(pl.len(), dtype=pl.Int64)
LATER = {name: pl.col(name) + pl.duration(minutes=NUMBER) for name in ("acquired_utc", "released_utc")}
DRAWN: dict[str, Callable[[Ledgers], alt.LayerChart]] = {
    "branches": lambda own: charts.branch_layout(
        own.lanes, many(own.tickets, ticket=pl.format("t{}", NUMBER), sequence=NUMBER)
    ),
    "branches of many rounds": lambda own: charts.branch_layout(many(own.lanes), many(own.tickets)),
    "budgets": lambda own: charts.budget_burn(many(own.attempts, ordinal=NUMBER)),
    "budgets of many rounds": lambda own: charts.budget_burn(many(own.attempts)),
    "chain": lambda own: charts.composition_chain(many(own.compositions)),
    "ratios": lambda own: charts.interaction_ratios(many(own.compositions)),
    "promise": lambda own: charts.ticket_against_rerun(many(own.rounds)),
    "rounds over time": lambda own: charts.rounds_over_time(
        many(own.rounds, closed_utc=pl.col("closed_utc") + pl.duration(hours=NUMBER))
    ),
    "A/A": lambda own: charts.aa_history(many(own.aa_checks, number=NUMBER)),
    "devices": lambda own: charts.device_timeline(many(own.devices, **LATER)),
    "wait": lambda own: charts.queue_wait(many(own.tickets, ticket=pl.format("t{}", NUMBER)), own.devices),
    "gains": lambda own: charts.gains(many(own.tickets, ticket=pl.format("t{}", NUMBER))),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_fault_30_many_rows_are_summed_up_and_the_chart_says_so(ledgers: Ledgers, name: str) -> None:
    spec: dict[str, Any] = DRAWN[name](ledgers).to_dict()
    (rows,) = spec["datasets"].values()
    assert 0 < len(rows) <= 5_000, len(rows)
    said = spec["title"]["subtitle"].replace(",", "")
    assert any(int(word) > 5_000 for word in said.split() if word.isdigit()), said


def test_branches_count_every_ticket_when_they_are_summed_up(ledgers: Ledgers) -> None:
    (rows,) = DRAWN["branches"](ledgers).to_dict()["datasets"].values()
    assert sum(row["tickets"] for row in rows) == many(ledgers.tickets).collect().height


def test_the_branches_of_a_round_leave_one_first_incumbent(ledgers: Ledgers) -> None:
    lanes, tickets = ledgers.lanes.collect(), ledgers.tickets.collect()
    names = [pl.lit(name).alias("round") for name in ("r1", "r2")]
    both = (pl.concat([frame.with_columns(name) for name in names]).lazy() for frame in (lanes, tickets))
    (rows,) = charts.branch_layout(*both).to_dict()["datasets"].values()
    assert len({row["lane"] for row in rows}) > 1
    assert [row["round"] for row in rows if row["_origin"]] == ["r1", "r2"]


def test_promise_and_rerun_of_many_rounds_are_points_about_a_line(ledgers: Ledgers) -> None:
    few = many(ledgers.rounds).head(20)
    spec = charts.ticket_against_rerun(few).to_dict()
    (rows,) = spec["datasets"].values()
    assert len(rows) == 20
    assert "the rerun found less than was promised: 20 of 20" in spec["title"]["subtitle"]


def test_the_chain_of_rounds_multiplies_gains_and_begins_at_one(ledgers: Ledgers) -> None:
    gains = [0.2, None, 0.5]
    rows = ledgers.rounds.collect()
    three = pl.concat([rows] * 3).with_columns(
        round=pl.Series(["r1", "r2", "r3"]), gain=pl.Series(gains, dtype=pl.Float64),
        closed_utc=pl.col("closed_utc") + pl.duration(hours=NUMBER),
        previous=pl.Series([None, "d1", "d2"]), evidence_digest=pl.Series(["d1", "d2", "d3"]),
    )  # fmt: skip
    (drawn,) = charts.rounds_over_time(three.lazy()).to_dict()["datasets"].values()
    assert [row["factor"] for row in drawn] == [1.0, 1.25, 1.25, 2.5]
    assert [row["result"] for row in drawn] == [
        "the first incumbent", "new incumbent", "the incumbent stays", "new incumbent",
    ]  # fmt: skip
