"""Charts of what close did: the chain of steps, interaction ratios, promise and rerun."""

from __future__ import annotations

import altair as alt
import polars as pl

from roundkit.analysis.charts.theme import (
    BLUE,
    GREY,
    MOST_MARKS,
    ORANGE,
    finish,
    horizontal,
    missing_text,
    percent,
    round_name,
    rows_axis,
    rows_of,
    tip,
    vertical,
    where_known,
)

_BASES = {
    "fresh": (BLUE, "circle"),
    "reused-selected": (ORANGE, "diamond"),
    "by-construction": (GREY, "square"),
}
_HEIGHT = 240
_ROW_HEIGHT = 34


def composition_chain(compositions: pl.LazyFrame) -> alt.LayerChart:
    """Each step's gain over the head before it, then the rerun of the final head against I0."""
    rows = compositions.collect()
    frame = rows.select(
        "campaign",
        step=_labelled(rows, pl.when(pl.col("kind") == "step").then(_step()).otherwise(pl.col("kind"))),
        gain_percent=percent(pl.col("gain")),
        low_percent=percent(pl.col("low")),
        high_percent=percent(pl.col("high")),
        outcome=pl.when("kept").then(pl.lit("kept")).otherwise(pl.lit("not kept")),
        verdict="verdict",
        against=pl.when(pl.col("kind") == "step").then(pl.lit("the head before")).otherwise(pl.lit("I0")),
        measured=pl.when("reused").then(pl.lit("the ticket's own")).otherwise(pl.lit("anew")),
        missing=pl.when(pl.col("gain").is_null()).then(pl.format("{}: {}", "verdict", "reason")),
    )
    kept = frame.filter(pl.col("outcome") == "kept").height
    counted, shown = (
        frame.height,
        "one lane a step on the head so far, with 95 % intervals; reruns are against I0",
    )
    if counted > MOST_MARKS:
        frame = _by_campaign(frame, "gain_percent", "low_percent", "high_percent", "outcome")
        shown = (
            f"{counted} steps and reruns summed up by campaign and outcome: median and range of their gains"
        )
    outcomes = ("kept", "not kept")
    colour = alt.Color("outcome:N", scale=alt.Scale(domain=outcomes, range=(BLUE, ORANGE)), title="outcome")
    shape = alt.Shape(
        "outcome:N", scale=alt.Scale(domain=outcomes, range=("circle", "cross")), title="outcome"
    )
    x = alt.X("step:N", sort=frame["step"].to_list(), title=None, axis=alt.Axis(labelAngle=0))
    title = "gain (%), up is better"
    tips = tip({
        "step:N": "step", "outcome:N": "outcome", "gain_percent:Q": "gain (%)", "low_percent:Q": "from (%)",
        "high_percent:Q": "to (%)", "against:N": "measured against", "measured:N": "measurement",
    })  # fmt: skip
    known = alt.Chart().transform_filter("datum.gain_percent !== null")
    intervals = known.mark_rule(strokeWidth=2).encode(
        x=x, y=alt.Y("low_percent:Q", title=title), y2="high_percent:Q", color=colour
    )
    points = known.mark_point(filled=True, opacity=1).encode(
        x=x, y=alt.Y("gain_percent:Q", title=title), color=colour, shape=shape, tooltip=tips
    )
    unknown = (
        alt.Chart()
        .transform_filter("datum.gain_percent === null")
        .mark_text(fontStyle="italic")
        .encode(x=x, y=alt.value(_HEIGHT / 2), text="missing:N")
    )
    return finish(
        [
            horizontal(0.0, dash=False),
            *where_known(frame, "low_percent", intervals),
            *where_known(frame, "gain_percent", points),
            unknown,
        ],
        rows_of(frame.drop("campaign")),
        title="Composition",
        subtitle=shown,
        description=f"{counted} steps and reruns, {kept} kept.",
        height=_HEIGHT,
    )


def interaction_ratios(compositions: pl.LazyFrame) -> alt.LayerChart:
    """Each step's gain over its lane's standalone gain; 1 means that the lanes do not touch each other."""
    rows = compositions.filter(pl.col("kind") == "step").collect()
    frame = rows.select(
        "campaign",
        step=_labelled(rows, _step()),
        ratio=pl.col("ratio").round(4),
        low=pl.col("ratio_low").round(4),
        high=pl.col("ratio_high").round(4),
        basis="ratio_basis",
        missing=pl.when(pl.col("ratio").is_null()).then(
            pl.lit("unmeasurable: standalone gain not clear of 0")
        ),
    )
    counted = frame.height
    shown = (
        "under 1 overlap, over 1 reinforcement, with 95 % intervals; a reused, selected gain is biased "
        "upward and pulls its ratio down"
    )
    if counted > MOST_MARKS:
        frame = _by_campaign(frame, "ratio", "low", "high", "basis")
        shown = f"{counted} steps summed up by campaign and basis: median and range of their ratios"
    y = rows_axis("step", frame)
    present = [basis for basis in _BASES if basis in frame["basis"].to_list()]
    colours = alt.Scale(domain=present, range=[_BASES[basis][0] for basis in present])
    shapes = alt.Scale(domain=present, range=[_BASES[basis][1] for basis in present])
    colour = alt.Color("basis:N", scale=colours, title="standalone gain")
    shape = alt.Shape("basis:N", scale=shapes, title="standalone gain")
    title = "interaction ratio"
    known = alt.Chart().transform_filter("datum.ratio !== null")
    tips = tip({"step:N": "step", "ratio:Q": "ratio", "low:Q": "from", "high:Q": "to", "basis:N": "basis"})
    intervals = (
        known.transform_filter("datum.low !== null")
        .mark_rule(strokeWidth=2)
        .encode(x=alt.X("low:Q", title=title), x2="high:Q", y=y, color=colour)
    )
    points = known.mark_point(filled=True, opacity=1).encode(
        x=alt.X("ratio:Q", title=title), y=y, color=colour, shape=shape, tooltip=tips
    )
    return finish(
        [
            vertical(1.0),
            *where_known(frame, "low", intervals),
            *where_known(frame, "ratio", points),
            missing_text("ratio", "missing:N", y),
        ],
        rows_of(frame.drop("campaign")),
        title="Interaction ratios",
        subtitle=shown,
        description=f"Interaction ratios of {counted} composition steps, with a line at 1.",
        height=_ROW_HEIGHT * max(1, frame.height),
    )


def _step() -> pl.Expr:
    return pl.format("{}. {}", pl.col("step"), pl.col("lane"))


def _labelled(rows: pl.DataFrame, label: pl.Expr) -> pl.Expr:
    """Return a label with its round in front, where there are several rounds."""
    several = rows.select("campaign", "round").n_unique() > 1
    return pl.format("{} · {}", round_name(rows), label) if several else label


def _by_campaign(frame: pl.DataFrame, value: str, low: str, high: str, kind: str) -> pl.DataFrame:
    """Return one row for each campaign and kind: the median of a value, its range as its interval."""
    rows = (
        frame.filter(pl.col(value).is_not_null())
        .group_by("campaign", kind)
        .agg(
            step=pl.format("{} · {} · {}", pl.col("campaign").first(), pl.col(kind).first(), pl.len()),
            **{value: pl.col(value).median(), low: pl.col(value).min(), high: pl.col(value).max()},
        )
        .sort("step")
    )
    others = [
        pl.lit(None, frame[name].dtype).alias(name) for name in frame.columns if name not in rows.columns
    ]
    return rows.with_columns(others).select(frame.columns)
