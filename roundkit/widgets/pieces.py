"""Pieces that a notebook shows: tables, trees and sentences, each as HTML and as text. One theme for all."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from roundkit.core.clock import format_utc
from roundkit.core.resources import shipped
from roundkit.core.text import visible

_LONGEST = 2000
_SIGNS = {"pass": "✓", "fail": "✗", "not-measured": "?", "invalid": "!"}
_KINDS = {"#": "rk-figure", "~": "rk-prose"}
_MINUS = "−"


class Markup(str):
    """HTML in which everything untrusted has been escaped."""

    __slots__ = ()


Content = str | Markup | None
Row = Sequence[Content]


@dataclass(frozen=True)
class Piece:
    """Something that a notebook shows.

    Attributes:
        markup: HTML without its style.
        text: The same in plain words, for whoever cannot see HTML.
    """

    markup: Markup
    text: str

    def __post_init__(self) -> None:
        """Make the text fit for a terminal."""
        object.__setattr__(self, "text", visible(self.text))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": styled(self.markup), "text/plain": self.text}


def styled(markup: Markup) -> Markup:
    """Return markup with the theme: it takes its colours from JupyterLab's, light or dark."""
    return Markup(f'<style>{_style()}</style><div class="rk-widget">{markup}</div>')


@cache
def _style() -> str:
    return (shipped("templates") / "widgets" / "style.css").read_text(encoding="utf-8")


def escape(text: str) -> Markup:
    """Return text that a browser shows and never interprets, shortened where it is very long."""
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
    return Markup(html.escape(visible(shown), quote=True))


def element(tag: str, content: Content, **attributes: str) -> Markup:
    """Return an element; content that is no markup is escaped. ``class_`` stands for ``class``."""
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    written = "".join(f' {name}="{escape(value)}"' for name, value in names.items())
    return Markup(f"<{tag}{written}>{_inert(content)}</{tag}>")


def joined(parts: Iterable[Markup], between: str = "") -> Markup:
    """Return pieces of markup one after the other."""
    return Markup(between.join(parts))


def code(text: str) -> Markup:
    """Return a text that a person copies as it is."""
    return element("code", text)


def table(caption: str, headings: Sequence[str], rows: Sequence[Row], *, empty: str) -> Piece:
    """Return a table; a missing value is a dash, and a table without rows says so.

    Args:
        caption: What it shows.
        headings: One a column; one that begins with ``#`` is over figures, one with ``~`` over prose.
        rows: Texts, which are untrusted, or markup.
        empty: What stands there when there is no row.
    """
    names = [heading.lstrip("".join(_KINDS)) for heading in headings]
    if not rows:
        return Piece(element("p", empty, class_="rk-empty"), empty)
    kinds = [_KINDS.get(heading[0], "") for heading in headings]
    head = joined(
        element("th", name, scope="col", class_=kind) for name, kind in zip(names, kinds, strict=True)
    )
    body = joined(
        element(
            "tr",
            joined(element("td", _cell(cell), class_=kind) for cell, kind in zip(row, kinds, strict=True)),
        )
        for row in rows
    )
    inside = joined(
        [
            element("caption", caption),
            element("thead", element("tr", head)),
            element("tbody", body),
        ]
    )
    markup = element(
        "div", element("table", inside), class_="rk-scroll", role="region", tabindex="0", aria_label=caption
    )
    lines = [" | ".join(_plain(cell) for cell in row) for row in rows]
    return Piece(markup, "\n".join([caption, " | ".join(names), *lines]))


def facts(rows: Sequence[tuple[str, Content]]) -> Piece:
    """Return names with their values."""
    inside = joined(
        element("div", joined([element("dt", name), element("dd", _cell(value))])) for name, value in rows
    )
    text = "\n".join(f"{name}: {_plain(value)}" for name, value in rows)
    return Piece(element("dl", inside, class_="rk-pairs"), text)


def sentence(text: str, kind: str = "note", *, remedy: str = "") -> Piece:
    """Return a sentence, with what the reader can do about it.

    Args:
        text: The sentence.
        kind: ``note``, ``good`` or ``bad``; the last is announced at once to whoever cannot see it.
        remedy: What would fix it.
    """
    parts = [element("span", text)]
    if remedy:
        parts.append(element("span", f"→ {remedy}", class_="rk-remedy"))
    role = "alert" if kind == "bad" else "status"
    markup = element("p", joined(parts, " "), class_=f"rk-sentence rk-{kind}", role=role)
    return Piece(markup, f"{text} → {remedy}" if remedy else text)


def together(*pieces: Piece) -> Piece:
    """Return pieces below one another."""
    return Piece(joined(piece.markup for piece in pieces), "\n".join(piece.text for piece in pieces))


def titled(title: str, piece: Piece) -> Piece:
    """Return a piece below a heading."""
    return Piece(joined([element("h3", title), piece.markup]), f"{title}\n{piece.text}")


def folded(summary: str, piece: Piece, *, opened: bool = False) -> Piece:
    """Return a piece that a reader opens."""
    inside = joined([element("summary", summary), piece.markup])
    markup = element("details", inside, open="") if opened else element("details", inside)
    return Piece(markup, f"{summary}\n{piece.text}")


def listing(text: str) -> Piece:
    """Return a text with its line breaks, as a terminal would show it."""
    return Piece(element("pre", text, class_="rk-listing", tabindex="0"), text)


Tree = Mapping[str, "Tree | None"]


def tree_of(paths: Iterable[str]) -> Tree:
    """Return paths as nested folders; a file is None."""
    root: dict[str, Any] = {}
    for path in sorted(paths):
        *folders, name = path.split("/")
        here = root
        for folder in folders:
            inside = here.setdefault(folder, {})
            here = inside if isinstance(inside, dict) else {}
        here[name] = None
    return root


def tree(root: Tree) -> Markup:
    """Return nested folders as a list within a list; folders can be folded away."""
    items = []
    for name, inside in root.items():
        if inside is None:
            items.append(element("li", code(name)))
        else:
            folder = joined([element("summary", code(f"{name}/")), tree(inside)])
            items.append(element("li", element("details", folder, open="")))
    return element("ul", joined(items), class_="rk-tree")


def verdict(name: str | None) -> Content:
    """Return a verdict with a sign, so that it does not depend on colour."""
    if name is None:
        return None
    sign = element("span", _SIGNS.get(name, ""), aria_hidden="true")
    return element("span", joined([sign, escape(name)], " "), class_=f"rk-verdict rk-verdict-{name}")


def percent(fraction: float | None) -> str | None:
    """Write a fraction as a percentage with its sign; a missing one stays missing."""
    return None if fraction is None else f"{100 * fraction:+.1f}\u202f%".replace("-", _MINUS)


def figure(value: float | None) -> str | None:
    """Write a figure with three significant digits; a missing one stays missing."""
    return None if value is None else f"{value:.3g}".replace("-", _MINUS)


def together_on_a_line(text: str) -> Markup:
    """Return a text that is never broken into two lines."""
    return element("span", text, class_="rk-whole")


def moment(time: datetime) -> str:
    """Write a time in UTC to the second."""
    return f"{format_utc(time)[:19].replace('T', ' ')} UTC"


def _inert(content: Content) -> Markup:
    return content if isinstance(content, Markup) else escape(content or "")


def _cell(content: Content) -> Content:
    return content if content else Markup('<span class="rk-none" aria-label="none">–</span>')


def _plain(content: Content) -> str:
    if not content:
        return "–"
    if not isinstance(content, Markup):
        return visible(content)
    text, inside = [], False
    for letter in content:
        inside = (inside or letter == "<") and letter != ">"
        if not inside and letter != ">":
            text.append(letter)
    return html.unescape("".join(text)).strip()
