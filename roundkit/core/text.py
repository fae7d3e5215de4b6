"""Text that others wrote, made fit to be shown."""

from __future__ import annotations

import unicodedata

_KEPT = frozenset("\n\t")


def visible(text: str) -> str:
    """Replace control characters, so that no candidate's output steers the reader's terminal."""
    return "".join(
        letter
        if letter in _KEPT or not unicodedata.category(letter).startswith("C")
        else "\N{REPLACEMENT CHARACTER}"
        for letter in text
    )
