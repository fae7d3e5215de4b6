"""A data frame as a table of a page."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from roundkit.report.markup import escape
from roundkit.report.views import Heading, Html, Kind, Missing, Table, Value, column_words

if TYPE_CHECKING:
    import polars as pl

_SHORT_TEXT = 24
MOST_ROWS = 1_000
"""Rows that a table shows; the caption says of how many."""


def frame_table(
    caption: str, frame: pl.DataFrame, *, percent: Collection[str] = (), empty: str = "Nothing to show."
) -> Table:
    """Return a frame as a table; a null figure shows the row's ``missing`` as its reason, where it has one.

    Args:
        caption: What the table shows.
        frame: Its rows; at most :data:`MOST_ROWS` of them are shown, and the caption says so.
        percent: Columns of fractions that are shown as per cent.
        empty: What stands there instead when there is no row.
    """
    if frame.height > MOST_ROWS:
        caption = f"{caption} (the first {MOST_ROWS:,} of {frame.height:,} rows)"
    names = [name for name in frame.columns if name != "missing"]
    kinds: dict[str, Kind] = {name: _kind(frame[name], name in percent) for name in names}
    headings = tuple(Heading(column_words(name), kinds[name]) for name in names)
    rows = tuple(
        tuple(_value(row, name, kinds[name]) for name in names)
        for row in frame.head(MOST_ROWS).iter_rows(named=True)
    )
    return Table(caption, headings, rows, empty=empty)


def opening(title: str, lead: str) -> Html:
    """Return what a page begins with: a title, and a sentence under it."""
    return Html(
        f'<header class="rk-head"><h1>{escape(title)}</h1><p class="rk-lead">{escape(lead)}</p></header>',
        f"{title}: {lead}",
    )


def _kind(column: pl.Series, percent: bool) -> Kind:
    if percent:
        return "percent"
    if column.dtype.is_numeric():
        return "number"
    if column.dtype.is_temporal():
        return "time"
    longest = max((len(str(value)) for value in column.head(MOST_ROWS) if value is not None), default=0)
    return "prose" if longest > _SHORT_TEXT else "text"


def _value(row: dict[str, Value], name: str, kind: Kind) -> Value:
    value, reason = row[name], row.get("missing")
    return Missing(str(reason)) if value is None and kind in {"number", "percent"} and reason else value
