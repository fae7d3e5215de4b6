"""The one look of every chart, and what all charts are made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

INK = "#1f2933"
MUTED = "#5b6770"
GRID = "#d9dee3"
"""Neutral colours; a page with a dark background redefines exactly these three."""

BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW, GREY = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8a949e",
)  # fmt: skip

VERDICTS = ("pass", "fail", "not-measured", "invalid")
VERDICT_COLOURS = (BLUE, ORANGE, GREY, PURPLE)
VERDICT_SHAPES = ("circle", "cross", "diamond", "triangle-up")

STATES = (*VERDICTS, "rejected", "waiting")
"""What a ticket may be, measured or not."""

_STATE_COLOURS = (*VERDICT_COLOURS, INK, SKY)
_STATE_SHAPES = (*VERDICT_SHAPES, "square", "triangle-right")

MOST_MARKS = 5_000
"""Rows that a chart draws one by one; beyond it they are summed up in polars, and the chart says so."""

NOTHING = "nothing to show"
"""What a chart without rows says."""

_FEW_TICKS = 12
_EMPTY_HEIGHT = 30

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"
_CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": _FONT,
    "view": {"stroke": None},
    "title": {"anchor": "start", "color": INK, "subtitleColor": MUTED, "fontSize": 14},
    "axis": {
        "labelColor": MUTED, "titleColor": INK, "gridColor": GRID, "domainColor": GRID, "tickColor": GRID,
        "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 180,
        "labelOverlap": True, "labelSeparation": 4,
    },
    "legend": {
        "labelColor": INK, "titleColor": MUTED, "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "orient": "top", "symbolSize": 90, "columns": 3,
    },
    "text": {"fontSize": 12, "color": MUTED},
    "rule": {"color": MUTED},
    "bar": {"color": BLUE},
    "point": {"size": 90, "strokeWidth": 2},
}  # fmt: skip


def rows_of(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Return a frame's rows as JSON values."""
    return frame.to_dicts()


def finish(
    layers: Sequence[alt.Chart],
    rows: list[dict[str, Any]],
    *,
    title: str,
    subtitle: str,
    description: str,
    height: int,
) -> alt.LayerChart:
    """Lay marks on one another over the same rows, under the one theme; without rows, say so instead.

    Args:
        layers: Marks, from back to front.
        rows: The data of all of them.
        title: What the chart is called.
        subtitle: What it shows, and what it leaves out.
        description: What a reader who cannot see it should know.
        height: Height in pixels, without title and legend.
    """
    chart: alt.LayerChart = (
        alt.layer(*(layers if rows else [_nothing()]), data=alt.InlineData(values=rows))
        .properties(
            width="container",
            height=height if rows else _EMPTY_HEIGHT,
            autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
            title=alt.TitleParams(text=title, subtitle=subtitle),
            description=description,
        )
        .configure(**_CONFIG)
    )
    return chart


def _nothing() -> alt.Chart:
    """Return the words of a chart without rows; a row of their own, as marks need one."""
    words: alt.Chart = (
        alt.Chart(alt.sequence(0, 1))
        .mark_text(text=NOTHING, align="left", fontStyle="italic", baseline="middle")
        .encode(x=alt.value(6), y=alt.value(_EMPTY_HEIGHT / 2))
    )
    return words


def where_known(frame: pl.DataFrame, field: str, *layers: alt.Chart) -> tuple[alt.Chart, ...]:
    """Return marks, or none where every value of the field is null: a scale over nothing has no ends."""
    return layers if frame[field].is_not_null().any() else ()


def percent(expression: pl.Expr) -> pl.Expr:
    """Return fractions as per cent, to a millionth: pages round once more, to two digits, and not twice."""
    return (expression * 100).round(6)


def round_name(frame: pl.LazyFrame | pl.DataFrame) -> pl.Expr:
    """Return what a round is called among those of a frame: with its campaign, where there are several."""
    campaigns = frame.lazy().select(pl.col("campaign").n_unique()).collect().item()
    return pl.format("{} · {}", "campaign", "round") if campaigns > 1 else pl.col("round")


def tip(names: Mapping[str, str]) -> list[alt.Tooltip]:
    """Return tooltips from field and type (``gain_percent:Q``) to what the field is called."""
    return [
        alt.Tooltip(field, title=called, format=",.3~f" if field.endswith(":Q") else alt.Undefined)
        for field, called in names.items()
    ]


def isolate(field: str) -> alt.Parameter:
    """Return a selection that a click on the legend makes; the name is fixed so that pages repeat."""
    return alt.selection_point(name=f"pick_{field}", fields=[field], bind="legend")


def scale_of(values: Sequence[str], looks: Sequence[str], present: Sequence[str]) -> alt.Scale:
    """Return the scale of the values that occur, each with the colour or shape that it has in every chart."""
    shown = [(value, look) for value, look in zip(values, looks, strict=True) if value in present]
    return alt.Scale(domain=[value for value, _ in shown], range=[look for _, look in shown])


def whole_numbers(most: int) -> alt.Axis:
    """Return an axis of counts up to the largest, which has no halves."""
    values = list(range(most + 1)) if most <= _FEW_TICKS else alt.Undefined
    return alt.Axis(format=",d", values=values)


def verdict_scales(present: Sequence[str]) -> tuple[alt.Color, alt.Shape]:
    """Return colour and shape of verdicts, with a legend of those that occur."""
    return state_scales([verdict for verdict in present if verdict in VERDICTS])


def state_scales(present: Sequence[str]) -> tuple[alt.Color, alt.Shape]:
    """Return colour and shape of verdicts and of tickets without one, with a legend of those that occur."""
    colours = scale_of(STATES, _STATE_COLOURS, present)
    shapes = scale_of(STATES, _STATE_SHAPES, present)
    return (
        alt.Color("verdict:N", scale=colours, title="verdict"),
        alt.Shape("verdict:N", scale=shapes, title="verdict"),
    )


def vertical(value: float, *, dash: bool = True) -> alt.Chart:
    """Return a vertical line at a value of x."""
    chart: alt.Chart = alt.Chart().mark_rule(strokeDash=[4, 3] if dash else [1, 0]).encode(x=alt.datum(value))
    return chart


def horizontal(value: float, *, dash: bool = True) -> alt.Chart:
    """Return a horizontal line at a value of y."""
    chart: alt.Chart = alt.Chart().mark_rule(strokeDash=[4, 3] if dash else [1, 0]).encode(y=alt.datum(value))
    return chart


def rows_axis(field: str, frame: pl.DataFrame) -> alt.Y:
    """Return the axis that gives each value of a field its own row, in the frame's order."""
    return alt.Y(f"{field}:N", sort=frame[field].to_list(), title=None)


def missing_text(field: str, missing: str, y: alt.Y) -> alt.Chart:
    """Return the reason, written where the mark would be, of every row whose field is null."""
    chart: alt.Chart = (
        alt.Chart()
        .mark_text(align="left", fontStyle="italic", baseline="middle")
        .encode(x=alt.value(6), y=y, text=alt.Text(missing))
        .transform_filter(f"datum.{field} === null")
    )
    return chart
