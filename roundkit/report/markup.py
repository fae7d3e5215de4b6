"""Text for readers: untrusted text made inert, figures with their units, and missing said as missing."""

from __future__ import annotations

import html
import unicodedata
from datetime import datetime

_MINUS = "−"
_LONGEST = 2000
_WHOLE_FROM = 999.95
"""Floats from here on have four digits before the point: ``1,235``, and neither ``1235`` nor ``1.2e+04``."""


def escape(text: str) -> str:
    """Return text that a browser shows and never interprets; control characters become visible."""
    shortened = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
    return html.escape("".join(_visible(letter) for letter in shortened), quote=True)


def _visible(letter: str) -> str:
    if letter in "\n\t":
        return letter
    hidden = unicodedata.category(letter) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return ascii(letter)[1:-1] if hidden else letter


def percent(fraction: float, digits: int = 1) -> str:
    """Return a fraction as per cent, with a true minus sign."""
    return f"{100 * fraction:.{digits}f}\u202f%".replace("-", _MINUS)


def number(value: float) -> str:
    """Return a figure with four significant digits, or all of a whole number and of a thousand or more."""
    if isinstance(value, int):
        text = f"{value:,d}"
    else:
        text = f"{value:,.0f}" if abs(value) >= _WHOLE_FROM else f"{value:.4g}"
    return text.replace("-", _MINUS)


def ratio(value: float) -> float:
    """Return a ratio to the thousandth: further digits of one near zero would say nothing."""
    return round(value, 3) + 0.0


def moment(time: datetime) -> str:
    """Return a time in UTC to the second."""
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def interval(low: float | None, high: float | None) -> str:
    """Return an interval of fractions as per cent, or an empty text when it has no ends."""
    return "" if low is None or high is None else f"{percent(low)} to {percent(high)}"


def joined(words: list[str]) -> str:
    """Return words as prose: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
