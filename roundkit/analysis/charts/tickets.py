"""Charts of tickets: what each gained, and the raw samples behind one."""

from __future__ import annotations

import altair as alt
import polars as pl

from roundkit.analysis.charts.branches import state_of
from roundkit.analysis.charts.theme import (
    BLUE,
    ORANGE,
    finish,
    isolate,
    missing_text,
    percent,
    rows_axis,
    rows_of,
    tip,
    verdict_scales,
    vertical,
    where_known,
)

MOST_ROWS = 80
"""Tickets shown one by one; beyond it lanes are summed up, and the chart says so."""

_ROW_HEIGHT = 26


def gains(tickets: pl.LazyFrame, *, min_gain: float | None = None) -> alt.LayerChart:
    """Every ticket's estimated gain with its interval and verdict, by lane.

    Args:
        tickets: The frame ``tickets``.
        min_gain: The rollback line as a fraction, drawn dashed.
    """
    frame = tickets.sort("round", "lane", "sequence").collect()
    several = frame["round"].n_unique() > 1
    label = pl.col("lane") + " · " + pl.col("ticket").str.slice(-8)
    frame = frame.select(
        ticket=(pl.col("round") + " · " + label) if several else label,
        lane="lane",
        verdict=state_of(),
        gain_percent=percent(pl.col("gain")),
        low_percent=percent(pl.col("low")),
        high_percent=percent(pl.col("high")),
        missing="missing",
        composed=pl.when("selected").then(pl.lit("selected")).otherwise(pl.lit("")),
    )
    counted = frame.height
    shown = "one row a ticket, with 95 % intervals; estimates of selected tickets are biased upward"
    if counted > MOST_ROWS:
        frame = _by_lane(frame)
        shown = f"{counted} tickets summed up by lane: the largest gain, with the range of all of them"
    verdicts = dict(frame.group_by("verdict").len().sort("verdict").iter_rows())
    y = rows_axis("ticket", frame)
    x = alt.X("gain_percent:Q", title="gain (%), right is better")
    colour, shape = verdict_scales(frame.filter(pl.col("gain_percent").is_not_null())["verdict"].to_list())
    measured = alt.Chart().transform_filter("datum.gain_percent !== null")
    pick = isolate("verdict")
    faded = alt.condition(pick, alt.value(1.0), alt.value(0.2))
    tips = tip({
        "ticket:N": "ticket", "verdict:N": "verdict", "gain_percent:Q": "gain (%)",
        "low_percent:Q": "from (%)", "high_percent:Q": "to (%)", "composed:N": "composition",
    })  # fmt: skip
    intervals = measured.mark_rule(strokeWidth=2).encode(
        x=alt.X("low_percent:Q", title="gain (%), right is better"), x2="high_percent:Q", y=y,
        color=colour, opacity=faded, tooltip=tips,
    )  # fmt: skip
    points = (
        measured.mark_point(filled=True, opacity=1)
        .encode(x=x, y=y, color=colour, shape=shape, opacity=faded, tooltip=tips)
        .add_params(pick)
    )
    lines = [vertical(0.0, dash=False)]
    if min_gain is not None:
        lines.append(vertical(round(100 * min_gain, 3)))
        shown += "; dashed: the least gain that passes"
    return finish(
        [
            *lines,
            *where_known(frame, "low_percent", intervals),
            *where_known(frame, "gain_percent", points),
            missing_text("gain_percent", "missing:N", y),
        ],
        rows_of(frame),
        title="Lanes and verdicts",
        subtitle=shown,
        description="Estimated gain of each ticket by lane. "
        + (", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()) or "No ticket")
        + ".",
        height=_ROW_HEIGHT * max(1, frame.height),
    )


def _by_lane(frame: pl.DataFrame) -> pl.DataFrame:
    best = pl.col("gain_percent").max()
    at_best = pl.col("verdict").sort_by("gain_percent", descending=True, nulls_last=True).first()
    return (
        frame.group_by("lane", maintain_order=True)
        .agg(
            ticket=pl.format("{} · {} tickets", pl.col("lane").first(), pl.len()),
            verdict=at_best,
            gain_percent=best,
            low_percent=pl.col("gain_percent").min(),
            high_percent=best.alias("top"),
            missing=pl.when(best.is_null()).then(pl.lit("nothing measured")),
            composed=pl.col("composed").max(),
        )
        .select(
            "ticket", "lane", "verdict", "gain_percent", "low_percent", "high_percent", "missing", "composed"
        )
    )


def raw_samples(trials: pl.LazyFrame, experiment: str, *, unit: str) -> alt.LayerChart:
    """Every trial of one experiment in order of time, the two of a pair joined.

    Args:
        trials: The frame ``trials``.
        experiment: Its id.
        unit: Unit of the metric.
    """
    frame = (
        trials.filter(pl.col("experiment") == experiment)
        .sort("position")
        .select(
            trial=pl.col("position") + 1,
            pair=pl.when(pl.col("pair").is_null()).then(pl.lit("warm-up")).otherwise(pl.format("{}", "pair")),
            order="order",
            side="side",
            value=pl.col("value").round(6),
            lowest=pl.col("samples").list.min().round(6),
            highest=pl.col("samples").list.max().round(6),
            missing="problem",
        )
        .collect()
    )
    sides = ("baseline", "candidate")
    colour = alt.Color("side:N", scale=alt.Scale(domain=sides, range=(ORANGE, BLUE)), title="side")
    shape = alt.Shape("side:N", scale=alt.Scale(domain=sides, range=("square", "circle")), title="side")
    x = alt.X("trial:O", title="trial, in order of time", axis=alt.Axis(labelAngle=0))
    y = alt.Y("value:Q", title=unit, scale=alt.Scale(zero=False))
    tips = tip({
        "trial:O": "trial", "pair:N": "pair", "order:N": "order", "side:N": "side",
        "value:Q": f"median ({unit})", "lowest:Q": "lowest repetition", "highest:Q": "highest repetition",
    })  # fmt: skip
    valid = alt.Chart().transform_filter("datum.value !== null")
    joined = (
        valid.transform_filter("datum.pair !== 'warm-up'")
        .mark_line(strokeWidth=1.5, color="#8a949e")
        .encode(x=x, y=y, detail="pair:N")
    )
    spread = valid.mark_rule(strokeWidth=1.5).encode(
        x=x, y=alt.Y("lowest:Q", title=unit), y2="highest:Q", color=colour
    )
    points = (
        valid.transform_filter("datum.pair !== 'warm-up'")
        .mark_point(filled=True, opacity=1)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=tips)
    )
    warm_ups = (
        valid.transform_filter("datum.pair === 'warm-up'")
        .mark_point(filled=False)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=tips)
    )
    problems = (
        alt.Chart()
        .transform_filter("datum.value === null")
        .mark_text(angle=270, align="left", fontStyle="italic")
        .encode(x=x, y=alt.value(190), text="missing:N")
    )
    invalid = frame["missing"].drop_nulls().len()
    return finish(
        [joined, spread, points, warm_ups, problems],
        rows_of(frame),
        title=f"Raw samples of {experiment}",
        subtitle="medians of the repetitions, their range as a line; hollow marks are discarded warm-ups",
        description=f"{frame.height} trials of {experiment} in order of time, {invalid} without a value.",
        height=220,
    )
