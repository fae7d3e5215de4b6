"""What is shown to people: text that others wrote, made fit for it, counts, numbers without exponents."""

from __future__ import annotations

import unicodedata

_KEPT = frozenset("\n\t")
_LINE_ENDS = frozenset({"Zl", "Zp"})
"""Line and paragraph separators, at which some readers begin a new line."""


def visible(text: str) -> str:
    """Replace control characters, so that no candidate's output steers the reader's terminal."""
    return "".join(
        letter
        if letter in _KEPT
        or not ((kind := unicodedata.category(letter)).startswith("C") or kind in _LINE_ENDS)
        else "\N{REPLACEMENT CHARACTER}"
        for letter in text
    )


def rounded(value: float, digits: int) -> str:
    """Return a number with so many significant digits; a larger one whole: ``160``, not ``1.6e+02``."""
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text else text


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
