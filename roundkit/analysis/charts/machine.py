"""Charts of the machine: A/A checks, who held which device, and how long tickets waited."""

from __future__ import annotations

import altair as alt
import polars as pl

from roundkit.analysis.charts.theme import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    YELLOW,
    finish,
    horizontal,
    rows_of,
    tip,
)

MOST_WAITS = 60
_HEIGHT = 220
_ROW_HEIGHT = 36
_PURPOSES = ("ticket", "aa", "compose", "standalone", "rerun", "fallback")
_PURPOSE_COLOURS = (BLUE, GREY, YELLOW, PURPLE, GREEN, ORANGE)


def aa_history(aa_checks: pl.LazyFrame) -> alt.LayerChart:
    """Every A/A check: its evidence, the drift statistic after it, and the plan's limits."""
    frame = (
        aa_checks.sort("round", "number")
        .with_row_index("check", offset=1)
        .select(
            check=pl.col("check").cast(pl.Int64),
            round="round",
            z=pl.col("z").round(3),
            drift=pl.col("cusum").round(3),
            result=pl.when("passed").then(pl.lit("passed")).otherwise(pl.lit("paused the queue")),
            missing="reason",
            limit="limit",
            single_limit="single_limit",
        )
        .collect()
    )
    x = alt.X("check:O", title="A/A check", axis=alt.Axis(labelAngle=0))
    title = "sigma"
    tips = tip({"check:O": "check", "round:N": "round", "z:Q": "z", "drift:Q": "drift", "result:N": "result"})
    names = ("passed", "paused the queue")
    bars = alt.Chart().transform_filter("datum.z !== null").mark_bar(size=14, color=SKY).encode(
        x=x, y=alt.Y("z:Q", title=title), tooltip=tips
    )  # fmt: skip
    line = alt.Chart().transform_filter("datum.drift !== null").mark_line(color=BLUE, strokeWidth=2).encode(
        x=x, y=alt.Y("drift:Q", title=title)
    )  # fmt: skip
    points = alt.Chart().transform_filter("datum.drift !== null").mark_point(filled=True, opacity=1).encode(
        x=x, y=alt.Y("drift:Q", title=title), tooltip=tips,
        shape=alt.Shape("result:N", scale=alt.Scale(domain=names, range=("circle", "cross")), title=None),
        color=alt.Color("result:N", scale=alt.Scale(domain=names, range=(BLUE, ORANGE)), title=None),
    )  # fmt: skip
    unknown = (
        alt.Chart()
        .transform_filter("datum.z === null")
        .mark_text(fontStyle="italic", angle=270)
        .encode(x=x, y=alt.value(_HEIGHT / 2), text="missing:N")
    )
    limits = [horizontal(value) for value in sorted(set(frame["limit"].to_list()))]
    failed = frame.filter(pl.col("result") != "passed").height
    return finish(
        [horizontal(0.0, dash=False), *limits, bars, line, points, unknown],
        rows_of(frame),
        title="A/A checks",
        subtitle="bars: z of each check; points: the drift statistic; dashed: where the queue pauses",
        description=f"{frame.height} checks of the incumbent against itself; {failed} paused the queue.",
        height=_HEIGHT,
    )


def device_timeline(devices: pl.LazyFrame) -> alt.LayerChart:
    """Who held which device when, in minutes since the first lease of the round."""
    minutes = (
        pl.col("acquired_utc") - pl.col("acquired_utc").min().over("round")
    ).dt.total_milliseconds() / 60_000
    frame = (
        devices.sort("round", "device", "acquired_utc")
        .select(
            device=pl.format("device {}", "device"),
            round="round",
            from_minute=minutes.round(3),
            to_minute=(minutes + pl.col("held_s") / 60).round(3),
            purpose="purpose",
            experiment="experiment",
            held_s=pl.col("held_s").round(2),
        )
        .collect()
    )
    used, held = _utilization(frame), frame["device"].n_unique()
    colour = alt.Color(
        "purpose:N", scale=alt.Scale(domain=_PURPOSES, range=_PURPOSE_COLOURS), title="purpose"
    )
    tips = tip({
        "experiment:N": "experiment", "purpose:N": "purpose", "device:N": "device", "held_s:Q": "held (s)",
        "from_minute:Q": "from (min)", "to_minute:Q": "to (min)",
    })  # fmt: skip
    bars = alt.Chart().mark_bar(height=18, stroke="#ffffff", strokeWidth=1).encode(
        x=alt.X("from_minute:Q", title="minutes since the first lease"), x2="to_minute:Q",
        y=alt.Y("device:N", title=None), color=colour, tooltip=tips,
    )  # fmt: skip
    return finish(
        [bars],
        rows_of(frame),
        title="Devices",
        subtitle=f"who held what when; in use: {used}",
        description=f"Leases of {held} devices over time. In use: {used}.",
        height=_ROW_HEIGHT * max(1, held),
    )


def _utilization(frame: pl.DataFrame) -> str:
    span = frame["to_minute"].max()
    if not isinstance(span, float) or span <= 0:
        return "nothing was leased"
    held = frame.group_by("device").agg(pl.col("held_s").sum()).sort("device")
    return ", ".join(f"{device} {held_s / 60 / span:.0%}" for device, held_s in held.iter_rows())


def queue_wait(tickets: pl.LazyFrame, devices: pl.LazyFrame) -> alt.LayerChart:
    """How long each measured ticket waited between intake and its first lease."""
    first = (
        devices.filter(pl.col("purpose") == "ticket")
        .group_by("round", "subject")
        .agg(pl.col("acquired_utc").min())
        .rename({"subject": "ticket"})
    )
    frame = (
        tickets.filter(pl.col("state") == "measured")
        .join(first, on=["round", "ticket"], how="left")
        .sort("round", "sequence")
        .select(
            ticket=pl.col("lane") + " · " + pl.col("ticket").str.slice(-8),
            lane="lane",
            wait_s=((pl.col("acquired_utc") - pl.col("intake_utc")).dt.total_milliseconds() / 1000).round(1),
            missing=pl.when(pl.col("acquired_utc").is_null()).then(pl.lit("never on a device")),
        )
        .collect()
    )
    counted, middle = frame.height, frame["wait_s"].median()
    shown = "from intake to the first lease"
    if counted > MOST_WAITS:
        shown = f"{counted} tickets in one bar a lane: the median wait from intake to the first lease"
        frame = frame.group_by("lane", maintain_order=True).agg(
            ticket=pl.format("{} · {} tickets", pl.col("lane").first(), pl.len()),
            wait_s=pl.col("wait_s").median().round(1),
            missing=pl.when(pl.col("wait_s").is_null().all()).then(pl.lit("never on a device")),
        )
    y = alt.Y("ticket:N", sort=frame["ticket"].to_list(), title=None)
    bars = alt.Chart().transform_filter("datum.wait_s !== null").mark_bar(height=14).encode(
        x=alt.X("wait_s:Q", title="wait (s)"), y=y,
        tooltip=tip({"ticket:N": "ticket", "wait_s:Q": "wait (s)"}),
    )  # fmt: skip
    unknown = (
        alt.Chart()
        .transform_filter("datum.wait_s === null")
        .mark_text(align="left", fontStyle="italic")
        .encode(x=alt.value(6), y=y, text="missing:N")
    )
    words = f"median {middle:.0f} s" if isinstance(middle, float) else "nobody waited"
    return finish(
        [bars, unknown],
        rows_of(frame),
        title="Queue wait",
        subtitle=f"{shown}; {words}",
        description=f"Wait of {counted} measured tickets for a device, {words}.",
        height=22 * max(1, frame.height),
    )
