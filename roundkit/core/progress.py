"""Long work shows progress: what is done of how much, at what rate, and what is left.

Work takes a :class:`Progress` and knows nothing of the form: a terminal's bars, plain lines, or a notebook's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from roundkit.core.text import rounded

PROGRESS_MIME = "application/vnd.roundkit.progress+json"
"""Under this type a notebook's progress says its last line to whoever runs the notebook."""
PLAIN_EVERY_S = 10.0
_MINUTE_S = 60.0
Foresight = Literal["whole", "bound", "none"]
_DAYS_FROM_HOURS = 48


@dataclass(frozen=True)
class Standing:
    """How one piece of long work stands.

    Attributes:
        name: What it is.
        unit: What is counted, in the plural.
        done: How many of them are done.
        total: How many there are; null when nobody can know.
        elapsed_s: Seconds since it began.
        foresight: What the time so far says of the rest: how long it takes; how long at most, where it may
            end early; or nothing, where the units are unlike or their number grows.
    """

    name: str
    unit: str
    done: int
    total: int | None
    elapsed_s: float
    foresight: Foresight = "whole"

    @property
    def rate(self) -> float | None:
        """Units a second so far; null before the first."""
        return self.done / self.elapsed_s if self.done and self.elapsed_s > 0 else None

    @property
    def left_s(self) -> float | None:
        """Seconds that the rest takes at the rate so far; null when it cannot be told."""
        if self.rate is None or self.total is None:
            return None
        return max(0, self.total - self.done) / self.rate

    def sentence(self) -> str:
        """Say it in one line: ``step-2-L1: 7 of 26 trials, 0.9 a second, about 21 s left``."""
        of = "" if self.total is None else f" of {self.total}"
        return ", ".join([f"{self.name}: {self.done}{of} {self.unit}", *self.pace()])

    def pace(self) -> list[str]:
        """Return rate and time left in words, as far as they are known."""
        if self.rate is None or self.left_s is None or self.foresight == "none":
            return []
        each_s = rounded(1 / self.rate, 2)
        pace = f"{rounded(self.rate, 2)} a second" if self.rate >= 1 else f"{each_s} s each"
        about = "at most about" if self.foresight == "bound" else "about"
        return [pace, f"{about} {duration(self.left_s)} left"] if self.left_s else [pace]


@dataclass
class Task:
    """One piece of long work that is going on; any thread may advance it."""

    name: str
    unit: str
    total: int | None
    _changed: Callable[[Task], None] = field(repr=False)
    done: int = 0
    began_s: float = field(default_factory=time.monotonic)
    foresight: Foresight = "whole"

    def advance(self, by: int = 1) -> None:
        """Count something as done."""
        self.set(self.done + by)

    def set(self, done: int, total: int | None = None) -> None:
        """Say how much is done, and of how much where that has changed."""
        self.done = done
        self.total = self.total if total is None else total
        self._changed(self)

    def standing(self) -> Standing:
        """Return how it stands now."""
        elapsed_s = time.monotonic() - self.began_s
        return Standing(self.name, self.unit, self.done, self.total, elapsed_s, self.foresight)


class Progress:
    """Progress that nobody sees; the forms that somebody sees derive from it.

    Pieces of work may overlap, begin and end in any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._tasks: list[Task] = []

    def say(self, line: str) -> None:
        """Tell of one thing that happened."""

    def begin(self, name: str, total: int | None, unit: str, *, foresight: Foresight = "whole") -> Task:
        """Begin a piece of long work.

        Args:
            name: What it is, in few words; untrusted text is made inert by whoever shows it.
            total: How many units there are; null when nobody can know.
            unit: What is counted, in the plural.
            foresight: What the time so far says of the rest: all, a bound, or nothing.
        """
        task = Task(name, unit, total, self._on_change, foresight=foresight)
        with self._lock:
            self._tasks.append(task)
            self._show(task)
        return task

    def end(self, task: Task) -> None:
        """End a piece of work; a second call does nothing."""
        with self._lock:
            if task in self._tasks:
                self._tasks.remove(task)
                self._show(task)

    @contextmanager
    def task(
        self, name: str, total: int | None, unit: str, *, foresight: Foresight = "whole"
    ) -> Iterator[Task]:
        """Begin a piece of work for the duration of a block."""
        task = self.begin(name, total, unit, foresight=foresight)
        try:
            yield task
        finally:
            self.end(task)

    def standings(self) -> list[Standing]:
        """Return how everything stands that is going on, oldest first."""
        with self._lock:
            return [task.standing() for task in self._tasks]

    def _on_change(self, task: Task) -> None:
        with self._lock:
            if task in self._tasks:
                self._show(task)

    def _show(self, task: Task) -> None:
        """Show that a task began, changed or ended; called under the lock."""


SILENT = Progress()
"""For whoever shows nothing."""


class PlainProgress(Progress):
    """Where there is no terminal: each thing that happened, and every so often how the work stands.

    Args:
        write: Takes one line.
        every_s: Seconds between two lines about how the work stands.
    """

    def __init__(self, write: Callable[[str], None], *, every_s: float = PLAIN_EVERY_S) -> None:
        super().__init__()
        self._write = write
        self._every_s = every_s
        self._said_s = time.monotonic()

    def say(self, line: str) -> None:
        """Write the line."""
        with self._lock:
            self._write(line)

    def _show(self, task: Task) -> None:
        if time.monotonic() - self._said_s < self._every_s:
            return
        self._said_s = time.monotonic()
        for standing in self.standings():
            if standing.done:
                self._write(standing.sentence())


def duration(seconds: float) -> str:
    """Write seconds for a person: ``48 s``, ``5 min``, ``2 h 10 min``, ``9 days``."""
    if seconds < 2 * _MINUTE_S:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / _MINUTE_S)
    hours, minutes = divmod(minutes, 60)
    if hours >= _DAYS_FROM_HOURS:
        return f"{round(hours / 24)} days"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
