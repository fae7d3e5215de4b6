"""Pairs of a name and what it is: figures, facts, and the footer that says how to recompute a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from roundkit.report.markup import escape
from roundkit.report.views import Heading, Html, Table

if TYPE_CHECKING:
    from roundkit.audit import Check

Pairs = Iterable[tuple[str, str]]


def pair_cells(pairs: Pairs, *, code: bool = False) -> str:
    """Return pairs as cells of a definition list; as code where somebody may want to copy what they say."""
    opened, closed = ("<code>", "</code>") if code else ("", "")
    return "".join(
        f"<div><dt>{escape(name)}</dt><dd>{opened}{escape(value)}{closed}</dd></div>" for name, value in pairs
    )


def facts_list(pairs: Sequence[tuple[str, str]], *, code: bool = False) -> Html:
    """Return pairs as a list of facts."""
    return Html(
        f'<dl class="rk-facts">{pair_cells(pairs, code=code)}</dl>',
        "\n".join(f"{name}: {value}" for name, value in pairs),
    )


def page_footer(pairs: Sequence[tuple[str, str]], failures: Sequence[Check]) -> Html:
    """Return the end of a page: checks that failed, where any did; its digests, and how to recompute it."""
    failed = Table(
        "Checks that failed",
        (Heading("check"), Heading("where", "code"), Heading("detail", "prose")),
        tuple((check.name, check.where, check.detail) for check in failures),
    )
    facts = facts_list(pairs, code=True)
    more = failed.to_html() if failures else ""
    return Html(f'{more}<footer class="rk-foot">{facts.markup}</footer>', facts.text)
