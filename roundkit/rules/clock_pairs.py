"""Whether somebody set a host's clock between two moments: then no difference of them is a duration. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from roundkit.models.clocks import ClockPair

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US_IN_S = 1_000_000


@dataclass(frozen=True)
class _Apart:
    """How far the two clocks are apart, in microseconds: no less than ``least``, no more than ``most``."""

    least: int
    most: int


def no_durations(pairs: Sequence[ClockPair | None]) -> str | None:
    """Say why differences of some moments are no durations; None where they are.

    Both clocks are slewed alike, so that they stay apart by the same, to what the readings resolve.

    Args:
        pairs: The moments on both clocks; None for one that was read on one clock alone.
    """
    known = [pair for pair in pairs if pair is not None]
    if len(known) < len(pairs):
        return "no clock that counts from the host's start was read beside the one that people set"
    if len({pair.boot_id for pair in known}) > 1:
        return "the host was started anew during it, or another host measured"
    apart = [_apart(pair) for pair in known]
    for number, later in enumerate(apart):
        for earlier in apart[:number]:
            if later.least > earlier.most:
                return f"the host's clock was set forward during it, by {_seconds(later, earlier)} s"
            if later.most < earlier.least:
                return f"the host's clock was set back during it, by {_seconds(earlier, later)} s"
    return None


def _apart(pair: ClockPair) -> _Apart:
    utc_us = (pair.utc - _EPOCH) // timedelta(microseconds=1)
    # What is written of either is cut to whole microseconds.
    return _Apart(utc_us - pair.to_us, utc_us + 1 - pair.from_us)


def _seconds(more: _Apart, less: _Apart) -> str:
    return f"{(more.least + more.most - less.least - less.most) / 2 / _US_IN_S:.6g}"
