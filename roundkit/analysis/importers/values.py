"""Values of foreign files as a frame can hold them: what does not fit is said, and nothing is guessed."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_INT64 = range(-(2**63), 2**63)


def real(value: object) -> float:
    """Return a finite number.

    Raises:
        ValueError: it is none, or beyond what a float holds.
    """
    try:
        found = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise ValueError(f"{_short(value)} is no finite number")
    return found


def whole(value: object) -> int:
    """Return a whole number of 64 bits.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value not in _INT64:
        raise ValueError(f"{_short(value)} is no whole number of 64 bits")
    return value


def text(value: str) -> str:
    """Return text; halves of a surrogate pair, which JSON can hold and a frame cannot, become visible."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)


def moment(value: object) -> datetime:
    """Return the time of an RFC 3339 text, or of seconds since 1970, in UTC.

    Raises:
        ValueError: it is none, has no timezone, or is beyond what a clock shows.
    """
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else _since_1970(value)
        if found.tzinfo is None:
            raise ValueError(f"{value!r} has no timezone")
        return found.astimezone(UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"{_short(value)} is no time that a clock shows") from error


def _since_1970(value: object) -> datetime:
    return datetime.fromtimestamp(real(value), UTC)


def _short(value: object) -> str:
    written = repr(value)
    return written if len(written) <= 60 else f"{written[:60]}…"
