"""Chart of budgets: how much of each lane's caps its attempts are charged."""

from __future__ import annotations

import altair as alt
import polars as pl

from roundkit.analysis.charts.theme import (
    BLUE,
    GREY,
    INK,
    MOST_MARKS,
    ORANGE,
    SKY,
    finish,
    round_name,
    rows_of,
    tip,
    vertical,
)

_ROW_HEIGHT = 26
_DIMENSIONS = {"turns": "turns", "tokens": "tokens", "micro_usd": "money", "wall_s": "wall time"}
_PHASES = ("settled", "claimed", "reserved", "cancelled")
_PHASE_COLOURS = (BLUE, ORANGE, SKY, GREY)


def budget_burn(attempts: pl.LazyFrame) -> alt.LayerChart:
    """What the attempts of each lane are charged, as a share of each cap that the lane has."""
    frame = pl.concat([_dimension(attempts, name, called) for name, called in _DIMENSIONS.items()]).collect()
    shown = (
        "every attempt at its worst case, whatever it cost; lanes and dimensions without a cap are left out"
    )
    made = attempts.select("round", "lane", "ordinal").collect().height
    if frame.height > MOST_MARKS:
        frame = _summed_up(frame)
        shown = f"{made} attempts summed up by budget and phase, {shown}"
    y = alt.Y("budget:N", sort=frame["budget"].unique(maintain_order=True).to_list(), title=None)
    bars = alt.Chart().mark_bar(height=14, stroke="#ffffff", strokeWidth=1).encode(
        x=alt.X("from_percent:Q", title="charged (% of the cap)", scale=alt.Scale(domain=(0, 100))),
        x2="to_percent:Q", y=y,
        color=alt.Color("phase:N", scale=alt.Scale(domain=_PHASES, range=_PHASE_COLOURS), title="attempt"),
        tooltip=tip({
            "budget:N": "budget", "attempt:O": "attempt", "phase:N": "phase", "charged:Q": "charged",
            "actual:Q": "used", "cap:Q": "cap",
        }),
    )  # fmt: skip
    unsettled = (
        alt.Chart()
        .transform_filter("datum.phase !== 'settled'")
        .mark_text(align="left", dx=3, fontSize=10, color=INK)
        .encode(x=alt.X("from_percent:Q"), y=y, text="phase:N")
    )
    return finish(
        [vertical(100.0), bars, unsettled],
        rows_of(frame),
        title="Budgets",
        subtitle=shown,
        description=f"{made} attempts against the caps of their lanes; {frame['budget'].n_unique()} caps.",
        height=_ROW_HEIGHT * max(1, frame["budget"].n_unique()),
    )


def _dimension(attempts: pl.LazyFrame, name: str, called: str) -> pl.LazyFrame:
    charged, cap = pl.col(f"charged_{name}"), pl.col(f"cap_{name}")
    after = charged.cum_sum().over("campaign", "round", "lane")
    return (
        attempts.filter(cap > 0)
        .sort("campaign", "round", "lane", "ordinal")
        .select(
            budget=pl.format("{} · {} · {}", round_name(attempts), "lane", pl.lit(called)),
            attempt="ordinal",
            phase="phase",
            from_percent=((after - charged) * 100 / cap).round(3),
            to_percent=(after * 100 / cap).round(3),
            charged=charged,
            actual=pl.col(f"actual_{name}"),
            cap=cap,
        )
    )


def _summed_up(frame: pl.DataFrame) -> pl.DataFrame:
    """Return one bar for each budget and phase; where budgets are many, for each dimension and phase."""
    if frame["budget"].n_unique() * len(_PHASES) > MOST_MARKS:
        share = (pl.col("to_percent") - pl.col("from_percent")) / pl.col("budget").n_unique().over("_what")
        frame = frame.with_columns(_what=pl.col("budget").str.split(" · ").list.last())
        frame = frame.with_columns(budget=pl.format("all · {}", "_what"), to_percent=share, from_percent=0.0)
        frame = frame.drop("_what")
    width = (pl.col("to_percent") - pl.col("from_percent")).sum()
    return (
        frame.group_by("budget", "phase")
        .agg(
            width.alias("_width"),
            pl.len().cast(pl.Int64).alias("attempt"),
            pl.col("charged", "actual", "cap").sum(),
        )
        .sort("budget", "phase")
        .with_columns(to_percent=pl.col("_width").cum_sum().over("budget").round(3))
        .with_columns(from_percent=(pl.col("to_percent") - pl.col("_width")).round(3))
        .select(frame.columns)
    )
