"""Charts of a policy pilot: time to the target with censoring, and every run beside the two bounds."""

from __future__ import annotations

import altair as alt
import polars as pl

from roundkit.analysis.charts.theme import (
    BLUE,
    INK,
    ORANGE,
    finish,
    missing_text,
    rows_axis,
    rows_of,
    tip,
    vertical,
    where_known,
)
from roundkit.models.policy_plan import ARMS, Arm

_COLOURS = alt.Scale(domain=list(ARMS), range=[BLUE, ORANGE])
_DASHES: dict[Arm, list[int]] = {"P": [1, 0], "S": [6, 3]}
_STATES = ("reached", "censored")
_SHAPES = alt.Scale(domain=list(_STATES), range=["circle", "cross"])
_HEIGHT = 260
_ROW_HEIGHT = 30


def time_to_target(curve: pl.DataFrame) -> alt.LayerChart:
    """The share of an arm's runs that have not reached the target, by seconds from the first launch."""
    x = _seconds()
    y = alt.Y(
        "without_target_percent:Q",
        title="runs without the target (%)",
        scale=alt.Scale(domain=[0, 100]),
    )
    colour = alt.Color("arm:N", scale=_COLOURS, title="arm")
    tips = tip({
        "arm:N": "arm", "time_s:Q": "seconds", "without_target_percent:Q": "without the target (%)",
        "event:N": "what happened", "runs_left:Q": "runs left",
    })  # fmt: skip
    lines = [
        alt.Chart()
        .transform_filter(f"datum.arm === '{arm}'")
        .mark_line(interpolate="step-after", strokeWidth=2, strokeDash=dash)
        .encode(x=x, y=y, color=colour)
        for arm, dash in _DASHES.items()
    ]
    shape = _shape("event")
    points = (
        alt.Chart()
        .transform_filter("datum.event !== 'start'")
        .mark_point(filled=True, opacity=1)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=tips)
    )
    reached = curve.filter(pl.col("event") == "reached").height
    censored = curve.filter(pl.col("event") == "censored").height
    return finish(
        [*lines, points],
        rows_of(curve),
        title="Time to the target",
        subtitle="product-limit estimate of each arm; a cross is a run that ended without it (censored)",
        description=f"{reached} runs reached the target, {censored} were censored.",
        height=_HEIGHT,
    )


def runs_and_bounds(
    runs: pl.DataFrame, *, serial_s: float | None, parallel_s: float | None
) -> alt.LayerChart:
    """Every run's time to the target or to censoring, beside N(A+sM) and max(A+sM, N·s·M/D).

    Args:
        runs: From :func:`roundkit.analysis.policy.runs_frame`.
        serial_s: The first bound in seconds; None where nothing was measured.
        parallel_s: The second.
    """
    frame = runs.select(
        "run",
        "arm",
        pl.col("time_s").round(3),
        "state",
        missing=pl.when(pl.col("time_s").is_null()).then(pl.format("{}: no time", "state")),
    )
    y = rows_axis("run", frame)
    x = _seconds()
    colour = alt.Color("arm:N", scale=_COLOURS, title="arm")
    shape = _shape("state")
    tips = tip({"run:N": "run", "arm:N": "arm", "time_s:Q": "seconds", "state:N": "run"})
    points = (
        alt.Chart()
        .transform_filter("datum.time_s !== null")
        .mark_point(filled=True, opacity=1)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=tips)
    )
    bounds = [
        layer
        for value, name in (
            (parallel_s, "side by side"),
            (serial_s, "one after the other"),
        )
        if value is not None
        for layer in (vertical(value), _label(value, name))
    ]
    return finish(
        [*bounds, *where_known(frame, "time_s", points), missing_text("time_s", "missing:N", y)],
        rows_of(frame),
        title="Every run, and the two bounds",
        subtitle="max(A+sM, N·s·M/D) and N(A+sM), without launches, A/A checks and closes, which runs have",
        description=f"{frame.height} runs by arm, with two vertical lines at the bounds.",
        height=_ROW_HEIGHT * max(2, frame.height),
    )


def _shape(field: str) -> alt.Shape:
    """Return the shape of what became of a run; its legend is neutral, since colours are the arms'."""
    legend = alt.Legend(symbolFillColor=INK, symbolStrokeColor=INK)
    return alt.Shape(f"{field}:N", scale=_SHAPES, title="run", legend=legend)


def _seconds() -> alt.X:
    return alt.X(
        "time_s:Q",
        title="seconds from the first launch",
        scale=alt.Scale(domainMin=0),
        axis=alt.Axis(tickCount=8),
    )


def _label(value: float, name: str) -> alt.Chart:
    chart: alt.Chart = (
        alt.Chart()
        .transform_aggregate(_rows="count()")
        .mark_text(align="left", dx=4, dy=-6, fontStyle="italic")
        .encode(x=alt.datum(value), y=alt.value(0), text=alt.value(name))
    )
    return chart
