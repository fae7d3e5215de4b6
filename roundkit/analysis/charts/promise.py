"""Chart of what tickets promised and what a fresh rerun found: the winner's curse, made visible."""

from __future__ import annotations

import altair as alt
import polars as pl

from roundkit.analysis.charts.theme import (
    BLUE,
    MOST_MARKS,
    MUTED,
    ORANGE,
    finish,
    missing_text,
    percent,
    rows_axis,
    rows_of,
    tip,
    vertical,
    where_known,
)

MOST_ROUNDS = 12
"""Rounds that get two rows of their own; beyond it each is a point, its promise across and its rerun up."""

_ROW_HEIGHT = 34
_SQUARE = 380
_CELLS = 60


def ticket_against_rerun(rounds: pl.LazyFrame) -> alt.LayerChart:
    """What the selected tickets promised beside what a fresh rerun found: rows, or points of many rounds.

    Args:
        rounds: The frame ``rounds``.
    """
    frame = (
        rounds.sort("closed_utc", "campaign", "round")
        .select(
            "campaign",
            "round",
            tickets_percent=percent(pl.col("ticket_gain")),
            rerun_percent=percent(pl.col("rerun_gain")),
            low_percent=percent(pl.col("rerun_low")),
            high_percent=percent(pl.col("rerun_high")),
            missing="missing",
        )
        .collect()
    )
    return _rows(frame) if frame.height <= MOST_ROUNDS else _points(frame)


def _rows(rounds: pl.DataFrame) -> alt.LayerChart:
    several = rounds["campaign"].n_unique() > 1
    name = pl.format("{} · {}", "campaign", "round") if several else pl.col("round")
    nothing = pl.lit(None, pl.Float64)
    parts = {
        "tickets": (pl.col("tickets_percent"), nothing, nothing),
        "rerun": (pl.col("rerun_percent"), pl.col("low_percent"), pl.col("high_percent")),
    }
    frame = pl.concat(
        [
            rounds.with_row_index("_round").select(
                "_round",
                round=name,
                figure=pl.lit(figure),
                gain_percent=value,
                low_percent=low,
                high_percent=high,
                missing=pl.when(value.is_null()).then(pl.col("missing")),
                row=pl.format("{} {}", name, pl.lit(figure)),
            )
            for figure, (value, low, high) in parts.items()
        ]
    ).sort("_round", maintain_order=True)
    names = ("tickets", "rerun")
    y = rows_axis("row", frame)
    colour = alt.Color("figure:N", scale=alt.Scale(domain=names, range=(ORANGE, BLUE)), legend=None)
    shape = alt.Shape("figure:N", scale=alt.Scale(domain=names, range=("diamond", "circle")), legend=None)
    known = alt.Chart().transform_filter("datum.gain_percent !== null")
    title = "gain over I0 (%), right is better"
    intervals = (
        known.transform_filter("datum.low_percent !== null")
        .mark_rule(strokeWidth=2)
        .encode(x=alt.X("low_percent:Q", title=title), x2="high_percent:Q", y=y, color=colour)
    )
    tips = tip(
        {"row:N": "figure", "gain_percent:Q": "gain (%)", "low_percent:Q": "from", "high_percent:Q": "to"}
    )
    points = known.mark_point(filled=True, opacity=1).encode(
        x=alt.X("gain_percent:Q", title=title), y=y, color=colour, shape=shape, tooltip=tips
    )
    return finish(
        [
            vertical(0.0, dash=False),
            *where_known(frame, "low_percent", intervals),
            *where_known(frame, "gain_percent", points),
            missing_text("gain_percent", "missing:N", y),
        ],
        rows_of(frame),
        title="Promise and rerun",
        subtitle="only the fresh rerun is a gain; tickets added up carry overlap and selection bias",
        description="Ticket estimates, added up, beside the gain of the fresh rerun; two rows a round.",
        height=_ROW_HEIGHT * max(1, frame.height),
    )


def _points(rounds: pl.DataFrame) -> alt.LayerChart:
    frame = rounds.filter(pl.col("tickets_percent").is_not_null() & pl.col("rerun_percent").is_not_null())
    counted, without = frame.height, rounds.height - frame.height
    ends = frame.select(pl.col("tickets_percent", "rerun_percent")).unpivot()["value"]
    low, high = (float(ends.min() or 0.0), float(ends.max() or 1.0)) if counted else (0.0, 1.0)  # type: ignore[arg-type]
    shown = "one mark a round"
    frame = frame.with_columns(rounds=pl.lit(1, pl.Int64))
    if counted > MOST_MARKS:
        frame = _in_cells(frame, max(high - low, 1e-3) / _CELLS)
        shown = f"{counted:,} rounds in marks sized by how many they stand for"
    frame = frame.with_columns(_low=pl.lit(low), _high=pl.lit(high))
    across = alt.X("tickets_percent:Q", title="tickets added up (%)", scale=alt.Scale(zero=False))
    up = alt.Y("rerun_percent:Q", title="fresh rerun (%)", scale=alt.Scale(zero=False))
    equal = (
        alt.Chart()
        .transform_window(number="row_number()")
        .transform_filter("datum.number === 1")
        .mark_rule(strokeDash=[4, 3], color=MUTED)
        .encode(
            x=alt.X("_low:Q", title="tickets added up (%)"), x2="_high:Q",
            y=alt.Y("_low:Q", title="fresh rerun (%)"), y2="_high:Q",
        )
    )  # fmt: skip
    points = alt.Chart().mark_point(filled=True, color=BLUE, opacity=0.6, size=70).encode(
        x=across, y=up,
        tooltip=tip({
            "campaign:N": "campaign", "round:N": "round", "tickets_percent:Q": "tickets (%)",
            "rerun_percent:Q": "rerun (%)", "low_percent:Q": "from (%)", "high_percent:Q": "to (%)",
            "rounds:Q": "rounds",
        }),
    )  # fmt: skip
    if counted > MOST_MARKS:
        points = points.encode(size=alt.Size("rounds:Q", legend=None))
    below = rounds.filter(pl.col("rerun_percent") < pl.col("tickets_percent")).height
    return finish(
        [equal, points],
        rows_of(frame),
        title="Promise and rerun",
        subtitle=f"{shown}; under the dashed line the rerun found less than was promised: {below:,} of "
        f"{counted:,}; {without:,} without a rerun",
        description=f"Rerun gains against added-up ticket estimates of {counted} rounds; {below} found less.",
        height=_SQUARE,
    )


def _in_cells(frame: pl.DataFrame, width: float) -> pl.DataFrame:
    """Return one row for each occupied cell of a grid, in its middle."""
    middle = [
        ((pl.col(name) / width).floor() * width + width / 2).alias(name)
        for name in ("tickets_percent", "rerun_percent")
    ]
    cells = (
        frame.group_by(middle)
        .agg(rounds=pl.len().cast(pl.Int64))
        .sort("tickets_percent", "rerun_percent")
        .with_columns(pl.col("tickets_percent", "rerun_percent").round(3))
    )
    absent = [name for name in frame.columns if name not in cells.columns]
    others = [pl.lit(None, frame.schema[name]).alias(name) for name in absent]
    return cells.with_columns(others).select(frame.columns)
