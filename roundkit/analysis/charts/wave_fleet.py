"""Chart of a wave campaign's fleet: how many draft agents ran at once, beside how many might."""

from __future__ import annotations

import altair as alt
import polars as pl

from roundkit.analysis.charts.theme import INK, SKY, finish, rows_of, tip

MOST_STEPS = 240
"""Stretches of time that the chart is divided into."""

_HEIGHT = 220


def fleet(shards: pl.LazyFrame, waves: pl.LazyFrame) -> alt.LayerChart:
    """How many draft agents ran at once over time, beside how many might."""
    frame = _fleet_frame(shards.collect(), waves.collect())
    busy = frame.filter(pl.col("running") > 0).height
    share = f"{100 * busy / frame.height:.0f} %" if frame.height else "none"
    ran, might = (float(frame[name].sum()) for name in ("running", "workers"))
    used = f"{100 * ran / might:.0f} %" if might else "an unknown part"
    x = alt.X("minute:Q", title="minutes of the campaign", scale=alt.Scale(zero=True, nice=False))
    y = alt.Y("running:Q", title="draft agents", axis=alt.Axis(format="d", tickMinStep=1))
    tips = tip({
        "minute:Q": "minute", "running:Q": "agents that ran, on average", "workers:Q": "agents that might",
    })  # fmt: skip
    area = alt.Chart().mark_area(interpolate="step-after", color=SKY, opacity=0.8).encode(
        x=x, y=y, tooltip=tips
    )  # fmt: skip
    line = alt.Chart().mark_line(
        interpolate="step-after", color=INK, strokeDash=[4, 3], strokeWidth=1.5
    ).encode(x=x, y=alt.Y("workers:Q", title="draft agents"))  # fmt: skip
    return finish(
        [area, line],
        rows_of(frame),
        title="How busy the fleet was",
        subtitle=f"agents that ran (area), {used} of those that might have (dashed); some in {share} of it",
        description=f"Draft agents over time: {used} of those that might have run; some in {share} of it.",
        height=_HEIGHT,
    )


def _fleet_frame(shards: pl.DataFrame, waves: pl.DataFrame) -> pl.DataFrame:
    """Return equal stretches of time with the agents that ran on average, and those that might have."""
    schema = {"minute": pl.Float64, "running": pl.Float64, "workers": pl.Int64}
    ended = shards.filter(pl.col("ended_utc").is_not_null())
    if not ended.height:
        return pl.DataFrame(schema=schema)
    times = list(ended.select("started_utc", "ended_utc").iter_rows())
    begin = min(started for started, _ in times)
    seconds = [
        ((started - begin).total_seconds(), (stopped - begin).total_seconds()) for started, stopped in times
    ]
    whole_s = max(stopped for _, stopped in seconds)
    step = max(whole_s / MOST_STEPS, 1.0)
    count = int(whole_s // step) + 1
    running = [0.0] * count
    for started, stopped in seconds:
        for at in range(int(started // step), int(stopped // step) + 1):
            running[at] += max(0.0, min(stopped, (at + 1) * step) - max(started, at * step)) / step
    levels = sorted(
        ((began - begin).total_seconds(), workers)
        for began, workers in waves.filter(pl.col("mode") == "wave")
        .select("began_utc", "workers")
        .iter_rows()
        if began is not None and workers is not None
    )
    rows = [
        (round(at * step / 60, 3), round(running[at], 3), _level(levels, (at + 1) * step))
        for at in range(count)
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _level(levels: list[tuple[float, int]], at_s: float) -> int | None:
    return next((workers for began, workers in reversed(levels) if began <= at_s), None)
