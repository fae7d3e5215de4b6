"""What a notebook shows: prose, tables and figures, each with a form for a browser and one for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from roundkit.core.text import counted
from roundkit.report import markup

if TYPE_CHECKING:
    import altair as alt

VEGA_MIME = "application/vnd.vegalite.v5+json"
"""The one Vega-Lite type that nbformat accepts and JupyterLab draws without a network."""

_LONGEST_UNBROKEN = 32
_UNITS = {
    "_percent": "%",
    "_s": "s",
    "_ms": "ms",
    "_bytes": "bytes",
    "_minutes": "minutes",
    "_utc": "",
}

Kind = Literal["text", "prose", "code", "verdict", "number", "percent", "time"]


@dataclass(frozen=True)
class Html:
    """A piece of a page.

    Attributes:
        markup: HTML; whoever makes it has escaped what is untrusted.
        text: The same for a terminal.
    """

    markup: str
    text: str

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self.markup, "text/plain": self.text}


@dataclass(frozen=True)
class Missing:
    """A figure that does not exist, and why."""

    reason: str


@dataclass(frozen=True)
class Heading:
    """One column of a table: what it is called, and what its values are."""

    name: str
    kind: Kind = "text"


Value = str | int | float | bool | datetime | Missing | None


@dataclass(frozen=True)
class Table:
    """A table that sorts and filters in the report; ``None`` means that there is nothing to say.

    Attributes:
        caption: What it shows.
        headings: Its columns.
        rows: Values by column; any text in them is taken to be untrusted.
        empty: What stands there instead when there is no row.
    """

    caption: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Value, ...], ...]
    empty: str = "Nothing to show."

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self.to_html(), "text/plain": self.to_text()}

    def to_html(self) -> str:
        """Return the table's markup."""
        if not self.rows:
            return f'<p class="rk-empty">{markup.escape(self.empty)}</p>'
        head = "".join(
            f'<th scope="col" class="k-{heading.kind}">{markup.escape(heading.name)}</th>'
            for heading in self.headings
        )
        body = "\n".join(f"<tr>{self._row(row)}</tr>" for row in self.rows)
        return (
            f'<div class="rk-table" role="region" tabindex="0" aria-label="{markup.escape(self.caption)}">'
            f"<table><caption>{markup.escape(self.caption)}</caption>\n"
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
        )

    def to_text(self) -> str:
        """Return the caption and the number of rows."""
        return f"{self.caption}: {counted(len(self.rows), 'row')}"

    def _row(self, row: tuple[Value, ...]) -> str:
        return "".join(_cell(value, heading.kind) for value, heading in zip(row, self.headings, strict=True))


def _cell(value: Value, kind: Kind) -> str:
    if value is None:
        return f'<td class="k-{kind}"><span class="rk-none" aria-label="none">–</span></td>'
    if isinstance(value, Missing):
        return f'<td class="k-{kind} rk-missing">missing: {markup.escape(value.reason)}</td>'
    sort = _sort_key(value)
    attribute = f' data-sort="{sort}"' if sort is not None else ""
    return f'<td class="k-{kind}"{attribute}>{_shown(value, kind)}</td>'


def _sort_key(value: Value) -> str | None:
    if isinstance(value, datetime):
        return f"{value.timestamp():.6f}"
    return repr(float(value)) if isinstance(value, (int, float)) else None


def _shown(value: Value, kind: Kind) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return markup.moment(value)
    if isinstance(value, (int, float)):
        return markup.percent(value, 2) if kind == "percent" else markup.number(value)
    text = markup.escape(str(value))
    if kind == "code":
        short = ' class="rk-short"' if len(text) <= _LONGEST_UNBROKEN else ""
        return f"<code{short}>{text}</code>"
    if kind == "verdict":
        return f'<span class="rk-verdict" data-verdict="{text}">{text}</span>'
    return text


@dataclass(frozen=True)
class Figure:
    """A chart with its title above and a table of the same rows below.

    Attributes:
        spec: The Vega-Lite specification, as JSON values.
        table: The rows that it draws.
    """

    spec: dict[str, Any] = field(repr=False)
    table: Table = field(repr=False)

    def _ipython_display_(self) -> None:
        from IPython.display import display

        table = self.table.to_html()
        if not self.table.rows:
            nothing = {"text/html": table, "text/plain": self.table.empty}
            display(nothing, raw=True)  # type: ignore[no-untyped-call]
            return
        data = f'<details class="rk-data"><summary>Table of these values</summary>{table}</details>'
        bundle = {
            VEGA_MIME: self.spec,
            "text/plain": f"{self.table.caption}. {self.spec.get('description', '')}",
        }
        display(bundle, raw=True)  # type: ignore[no-untyped-call]
        display({"text/html": data, "text/plain": self.table.to_text()}, raw=True)  # type: ignore[no-untyped-call]


def figure(chart: alt.LayerChart) -> Figure:
    """Return a chart for display, with the table of the rows that it holds.

    Raises:
        ValueError: the chart does not carry its rows, its title and its description with it.
    """
    spec: dict[str, Any] = chart.to_dict()
    rows = spec.pop("datasets", {}).get(spec.get("data", {}).get("name"))
    title = spec.get("title", {}).get("text")
    if rows is None or not title or not spec.get("description"):
        raise ValueError("a chart of a report has inline rows, a title and a description")
    spec["data"] = {"values": rows}
    return Figure(spec, _table_of(rows, title))


def _table_of(rows: Sequence[dict[str, Any]], caption: str) -> Table:
    # Names that begin with an underscore say where a mark is drawn, and nothing to a reader.
    names = [name for name in rows[0] if not name.startswith("_")] if rows else []
    kinds = {name: _kind_of([row[name] for row in rows]) for name in names}
    return Table(
        caption,
        tuple(Heading(column_words(name), kinds[name]) for name in names),
        tuple(tuple(_value_of(row, name, kinds[name]) for name in names) for row in rows),
        empty=f"{caption}: nothing to show.",
    )


def _kind_of(values: list[Any]) -> Kind:
    return "number" if any(isinstance(value, (int, float)) for value in values) else "text"


def _value_of(row: dict[str, Any], name: str, kind: Kind) -> Value:
    value: Value = row[name]
    if value is None and kind == "number" and row.get("missing"):
        return Missing(str(row["missing"]))
    return value


def column_words(name: str) -> str:
    """Return what a column of a frame is called on a page, its unit in parentheses; times say their zone."""
    ends = (end for end in _UNITS if name.endswith(end))
    end = next(ends, "")
    unit = _UNITS[end] if end else ""
    words = name.removesuffix(end).replace("_", " ")
    return f"{words} ({unit})" if unit else words
