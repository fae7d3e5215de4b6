"""Charts of the machine: A/A checks, who held which device, and how long tickets waited."""

from __future__ import annotations

import altair as alt
import polars as pl

from roundkit.analysis.charts.theme import (
    BLUE,
    GREEN,
    GREY,
    MOST_MARKS,
    ORANGE,
    PURPLE,
    SKY,
    YELLOW,
    finish,
    horizontal,
    round_name,
    rows_of,
    tip,
    where_known,
)
from roundkit.core.text import counted

MOST_WAITS = 60
_HEIGHT = 220
_BINS = 200
_CHECKS_TOGETHER = 50
_MOST_NAMED = 8
_PURPOSES = ("ticket", "aa", "compose", "standalone", "rerun", "fallback")
_PURPOSE_COLOURS = (BLUE, GREY, YELLOW, PURPLE, GREEN, ORANGE)


def aa_history(aa_checks: pl.LazyFrame) -> alt.LayerChart:
    """Every A/A check: its evidence, the drift statistic after it, and the plan's limits."""
    frame = (
        aa_checks.sort("campaign", "round", "number")
        .with_row_index("check", offset=1)
        .select(
            check=pl.col("check").cast(pl.Int64),
            round=round_name(aa_checks),
            z=pl.col("z").round(3),
            drift=pl.col("cusum").round(3),
            result=pl.when("passed").then(pl.lit("passed")).otherwise(pl.lit("paused the queue")),
            missing="reason",
            limit="limit",
            single_limit="single_limit",
        )
        .collect()
    )
    checks, failed = frame.height, frame.filter(pl.col("result") != "passed").height
    shown = "bars: z of each check; points: the drift statistic; dashed: where the queue pauses"
    if checks > MOST_MARKS:
        frame = _worst_of(frame)
        shown = (
            f"{checks} checks, of each {_CHECKS_TOGETHER} in a row the one with the largest drift; {shown}"
        )
    x = alt.X("check:O", title="A/A check", axis=alt.Axis(labelAngle=0, labelOverlap=True))
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
    return finish(
        [
            horizontal(0.0, dash=False),
            *limits,
            *where_known(frame, "z", bars),
            *where_known(frame, "drift", line, points),
            unknown,
        ],
        rows_of(frame),
        title="A/A checks",
        subtitle=shown,
        description=f"{counted(checks, 'check')} of the incumbent against itself; {failed} paused the queue.",
        height=_HEIGHT,
    )


def _worst_of(frame: pl.DataFrame) -> pl.DataFrame:
    """Return of every so many checks in a row the one whose drift statistic is the largest."""
    together = (pl.col("check") - 1) // _CHECKS_TOGETHER
    worst = pl.col("drift").abs().fill_null(-1.0).arg_max()
    return (
        frame.group_by(together.alias("_together"), maintain_order=True)
        .agg(pl.all().gather(worst).first())
        .drop("_together")
    )


def device_timeline(devices: pl.LazyFrame) -> alt.LayerChart:
    """Who held which device when, in minutes since the first lease of the round, and how much of the time."""
    frame = _leases(devices)
    used, held, leases = _utilization(frame), frame["device"].n_unique(), frame.height
    shown = "who held what when"
    if leases > MOST_MARKS:
        frame = _in_bins(frame)
        shown = f"{leases} leases summed up: how much of each of {_BINS} spans a device was held for what"
    present = [purpose for purpose in _PURPOSES if purpose in frame["purpose"].to_list()]
    colours = [_PURPOSE_COLOURS[_PURPOSES.index(purpose)] for purpose in present]
    colour = alt.Color("purpose:N", scale=alt.Scale(domain=present, range=colours), title="purpose, from top")
    tips = tip({
        "experiment:N": "experiment", "purpose:N": "purpose", "device:N": "device", "held_s:Q": "held (s)",
        "from_minute:Q": "from (min)", "to_minute:Q": "to (min)",
    })  # fmt: skip
    # Each purpose has a line of its own, so that it can be told without colour.
    bars = alt.Chart().mark_bar(stroke="#ffffff", strokeWidth=0.5).encode(
        x=alt.X("from_minute:Q", title="minutes since the first lease"), x2="to_minute:Q",
        y=alt.Y("device:N", title=None, scale=alt.Scale(paddingInner=0.3)),
        yOffset=alt.YOffset("purpose:N", scale=alt.Scale(domain=present)),
        color=colour, tooltip=tips,
    )  # fmt: skip
    return finish(
        [bars],
        rows_of(frame),
        title="Devices",
        subtitle=f"{shown}; in use: {used}",
        description=f"{leases} leases of {held} devices over time. In use: {used}.",
        height=(14 * max(1, len(present)) + 18) * max(1, held),
    )


def _leases(devices: pl.LazyFrame) -> pl.DataFrame:
    key = ("campaign", "round")
    several = devices.select(key).unique().collect().height > 1
    known = round_name(devices)
    name = pl.format("{} · device {}", known, "device") if several else pl.format("device {}", "device")
    minutes = (
        pl.col("acquired_utc") - pl.col("acquired_utc").min().over(key)
    ).dt.total_milliseconds() / 60_000
    return (
        devices.sort("campaign", "round", "device", "acquired_utc")
        .select(
            device=name,
            round=known,
            from_minute=minutes.round(3),
            to_minute=(minutes + pl.col("held_s") / 60).round(3),
            purpose="purpose",
            experiment="experiment",
            held_s=pl.col("held_s").round(2),
        )
        .collect()
    )


def _in_bins(frame: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each device, purpose and span of time; beyond twenty devices, for all of them."""
    if frame["device"].n_unique() > MOST_MARKS // _BINS:
        frame = frame.with_columns(device=pl.lit("all devices"))
    width = max(float(frame["to_minute"].max() or 0.0) / _BINS, 1e-3)  # type: ignore[arg-type]
    start = (pl.col("from_minute") / width).floor() * width
    spans = frame.group_by("device", "purpose", from_minute=start).agg(
        held_s=pl.col("held_s").sum(),
        experiment=pl.format("{} leases", pl.len()),
        round=pl.col("round").min(),
    )
    share = (pl.col("held_s") / 60 / width).clip(0.0, 1.0)
    return (
        spans.with_columns(to_minute=(pl.col("from_minute") + share * width).round(3))
        .with_columns(pl.col("from_minute").round(3), pl.col("held_s").round(2))
        .sort("device", "purpose", "from_minute")
        .select(frame.columns)
    )


def _utilization(frame: pl.DataFrame) -> str:
    """Return how much of the time from first to last lease each device was held, or all of them together."""
    held = (
        frame.group_by("device")
        .agg(held_s=pl.col("held_s").sum(), round=pl.col("round").first())
        .join(frame.group_by("round").agg(span_s=pl.col("to_minute").max() * 60), on="round")
        .filter(pl.col("span_s") > 0)
        .sort("device")
    )
    if not held.height:
        return "nothing was leased"
    if held.height > _MOST_NAMED:
        share = held.select(pl.col("held_s").sum() / pl.col("span_s").sum()).item()
        return f"{share:.0%} of {held.height} devices"
    shares = held.select("device", pl.col("held_s") / pl.col("span_s"))
    return ", ".join(f"{device} {share:.0%}" for device, share in shares.iter_rows())


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
    waits, middle = frame.height, frame["wait_s"].median()
    shown = "from intake to the first lease"
    if waits > MOST_WAITS:
        shown = f"{waits} tickets in one bar a lane: the median wait from intake to the first lease"
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
        [*where_known(frame, "wait_s", bars), unknown],
        rows_of(frame),
        title="Queue wait",
        subtitle=f"{shown}; {words}",
        description=f"Wait of {waits} measured tickets for a device, {words}.",
        height=22 * max(1, frame.height),
    )
