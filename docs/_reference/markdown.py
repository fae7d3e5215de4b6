"""Small pieces of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`+[^`]*`+)")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells are Markdown, on one line each."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cell(text) for text in line)} |" for line in lines) + "\n"


def cell(text: str) -> str:
    """Return text for a cell: on one line, its bars and angle brackets taken for what they are."""
    parts = _CODE.split(" ".join(text.split()))
    safe = [part if part.startswith("`") else part.replace("<", "&lt;") for part in parts]
    return "".join(safe).replace("|", "\\|")


def code(text: str) -> str:
    """Return text as code, whatever backticks are in it; nothing for nothing."""
    if not text:
        return ""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def anchor(*words: str) -> str:
    """Return a name for a place to link to."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")


def toctree(names: Iterable[str]) -> str:
    """Return a list of pages for the side bar."""
    return "```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"
