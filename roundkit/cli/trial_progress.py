"""Trials as they end: a bar with rate and time left in a terminal, else a plain line every so often."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from roundkit.core.text import visible

if TYPE_CHECKING:
    # For annotations only: help and version must not wait for numpy and scipy.
    from roundkit.models.measurement import Trial

_PLAIN_EVERY_S = 5.0


class TrialProgress:
    """Shows steps and trials on standard error, so that standard output holds results alone.

    Args:
        what: What is counted, for the bar.
    """

    def __init__(self, what: str) -> None:
        self._console = Console(stderr=True)
        self._what = what
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._started_s = time.monotonic()
        self._told_s: float | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, line: str) -> None:
        """Print one line above the bar."""
        self._console.print(visible(line), markup=False, highlight=False, soft_wrap=True)

    def advance(self, done: int, planned: int, _trial: Trial) -> None:
        """Take one trial of an experiment that has at most ``planned``; may be called by any thread."""
        now = time.monotonic()
        if done == 1:
            self._started_s, self._told_s = now, None
        # The first trial has ended when counting begins, so it is not in the rate.
        passed = now - self._started_s
        rate = (done - 1) / passed if passed > 0 and done > 1 else None
        if self._bar is not None:
            self._advance_bar(self._bar, done, planned, rate)
        elif self._told_s is None or now - self._told_s >= _PLAIN_EVERY_S:
            self._told_s = now
            left = (
                "" if rate is None else f", {rate:.1f} a second, at most {(planned - done) / rate:.0f} s left"
            )
            self.say(f"{done} of at most {planned} {self._what}{left}")

    def _advance_bar(self, bar: Progress, done: int, planned: int, rate: float | None) -> None:
        words = "" if rate is None else f"{rate:.1f}/s"
        if self._task is None or done == 1:
            if self._task is not None:
                bar.remove_task(self._task)
            self._task = bar.add_task(f"{self._what}, at most", total=planned, rate=words)
        bar.update(self._task, completed=done, total=planned, rate=words)
