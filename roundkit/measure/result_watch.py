"""Counting how often a trial's result file was written.

In a single-process benchmark the candidate shares the process that reports, so it can write the result
itself: before the benchmark does, or after it. The kernel tells the coordinator of every write; a result
that was not written exactly once is not believed. This catches the plain ways only: the benchmark stays
forgeable, and a driver that holds the result is the remedy.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from roundkit.measure.folder_watch import (
    CLOSED,
    CREATED,
    MODIFIED,
    MOVED_HERE,
    OPENED,
    OVERFLOWED,
    FolderWatch,
)


class ResultWatch:
    """Watches one folder while a trial runs, from outside the boundary.

    Args:
        folder: The folder in which the result appears.
        name: Name of the result file.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._name = os.fsencode(name)
        # Opening is listened to only because the kernel merges equal events that follow one another.
        self._watch = FolderWatch(folder, MODIFIED | CLOSED | OPENED | MOVED_HERE | CREATED)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.__exit__(kind, error, trace)

    def problem(self) -> str | None:
        """Say what is wrong with the way in which the result came about; call once, after the trial."""
        finished, created = 0, 0
        for mask, name in self._watch.events():
            if mask & OVERFLOWED:
                return "too much happened in the trial folder to tell who wrote the result"
            if name != self._name:
                continue
            if finished and mask & MODIFIED:
                return "the result was changed after it was finished"
            finished += bool(mask & (CLOSED | MOVED_HERE))
            created += bool(mask & (CREATED | MOVED_HERE))
        if finished > 1 or created > 1:
            return f"the result was written {max(finished, created)} times; a benchmark writes it once"
        return None
