"""How fast the agents of a wave are started: a provider takes many at once, but not all of them arriving."""

from __future__ import annotations

from dataclasses import dataclass


def pause_s(shards: int, *, window_s: float, most_s: float) -> float:
    """Return the seconds between two starts: the window divided by the shards, but no longer than ``most_s``.

    A wave of few shards therefore starts promptly, and a large one takes the whole window.
    """
    return min(window_s / shards, most_s) if shards > 1 else 0.0


@dataclass
class Ramp:
    """The starts of one wave, by whatever clock the caller has.

    A start that came late is not made up for: what is waiting would arrive all at once.

    Attributes:
        pause_s: Seconds between two starts.
    """

    pause_s: float
    _next_s: float | None = None

    def wait_s(self, now_s: float) -> float:
        """Return the seconds until the next start may be."""
        return 0.0 if self._next_s is None else max(0.0, self._next_s - now_s)

    def started(self, now_s: float) -> None:
        """Take note of a start."""
        self._next_s = now_s + self.pause_s
