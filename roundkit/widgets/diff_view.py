"""A diff as a reviewer reads it: file by file, lines marked by sign and ground, code with syntax colours."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Name, Number, String
from pygments.util import ClassNotFound

from roundkit.core.text import visible
from roundkit.widgets.pieces import Markup, Piece, element, joined, sentence, together

MOST_LINES = 5_000
"""Lines of a diff that are shown; of a longer one, the rest is said to be left out."""

_LONGEST_LINE = 2_000
_COLOURED = (
    (Keyword, "k"),
    (String, "s"),
    (Comment, "c"),
    (Number, "m"),
    (Name.Function, "f"),
    (Name.Class, "f"),
)
_KINDS = {"+": "rk-added", "-": "rk-removed", "@": "rk-hunk"}
_NAMES = re.compile(r"diff --git [^/]*/(.*) [^/]*/\1", re.DOTALL)
_HEADERS = ("index ", "new file", "deleted file", "old mode", "new mode", "similarity", "--- ", "+++ ")


@dataclass
class _File:
    """One file of a diff: its name, what became of it, and its lines."""

    name: str
    notes: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def diff_view(data: bytes) -> Piece:
    """Return a diff for a notebook.

    Args:
        data: A unified diff as git writes it; untrusted.
    """
    # A line ends where git ends it. What else some call a line's end stands in a candidate's own lines, and
    # could pass for another file, a sign or a header.
    lines = data.decode("utf-8", "replace").removesuffix("\n").split("\n")
    if not data:
        return sentence("The candidate changes nothing.")
    files = list(_files(lines[:MOST_LINES]))
    pieces = [_shown(file) for file in files]
    if len(lines) > MOST_LINES:
        pieces.append(
            sentence(
                f"{len(lines) - MOST_LINES:,} more lines are left out here.", "bad", remedy="copy the packet"
            )
        )
    return together(*pieces)


def _files(lines: list[str]) -> Iterator[_File]:
    current: _File | None = None
    in_header = False
    for line in lines:
        if line.startswith("diff --git "):
            if current is not None:
                yield current
            current, in_header = _File(_name(line)), True
        elif current is None:
            current = _File("")
            current.lines.append(line)
        elif in_header and line.startswith(_HEADERS):
            if line.startswith(("new file", "deleted file", "old mode", "new mode")):
                current.notes.append(line)
        else:
            in_header = False
            current.lines.append(line)
    if current is not None:
        yield current


def _name(line: str) -> str:
    """Return the path of a file, without the word for either side."""
    names = _NAMES.fullmatch(line)
    return names[1].rstrip('"') if names else line.rpartition(" ")[2]


def _shown(file: _File) -> Piece:
    lexer = _lexer(file.name)
    body = joined((_line(line, lexer) for line in file.lines), "\n")
    title = " · ".join([file.name or "a file", *file.notes])
    parts = [element("h3", title), element("pre", body, class_="rk-listing rk-diff", tabindex="0")]
    return Piece(joined(parts), "\n".join([title, *file.lines]))


def _lexer(name: str) -> Lexer:
    try:
        return get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return TextLexer(stripnl=False, ensurenl=False)


def _line(line: str, lexer: Lexer) -> Markup:
    sign, code = line[:1], visible(line[1:])[:_LONGEST_LINE]
    kind = _KINDS.get(sign, "rk-same")
    left = len(line) - 1 - _LONGEST_LINE
    cut = (
        [element("strong", f"… {left:,} more characters are left out here; copy the packet")]
        if left > 0
        else []
    )
    if kind == "rk-hunk":
        return element("span", joined([element("span", line[: _LONGEST_LINE + 1]), *cut]), class_=kind)
    coloured = joined(_token(kind_, text) for kind_, text in lexer.get_tokens(code))
    return element("span", joined([Markup(html.escape(sign)), coloured, *cut]), class_=kind)


def _token(kind: object, text: str) -> Markup:
    written = Markup(html.escape(text, quote=True))
    for family, letter in _COLOURED:
        if kind in family:
            return element("span", written, class_=f"rk-code-{letter}")
    return written
