"""Long work in a notebook: bars and lines in the cell's output, kept when the work has ended."""

from __future__ import annotations

import contextvars
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from roundkit.core.progress import PROGRESS_MIME, Progress, Standing, Task
from roundkit.widgets.pieces import Markup, Piece, element, joined, listing, styled

_EVERY_S = 0.25
_LINES = 200


class NotebookProgress(Progress):
    """Progress shown in the output of one cell, and updated from any thread.

    It is a display that is updated, not a widget with a state of its own: so an executed notebook, and a page
    made of it, keep what it showed last.

    Args:
        beside: Makes what stands above the bars; asked again whenever something happened.
        within: Folders whose own paths are left out of what is said: they say whose machine this is.
    """

    def __init__(self, beside: Callable[[], Piece] | None = None, within: Sequence[Path] = ()) -> None:
        super().__init__()
        self._within = within
        from IPython.display import display

        self._beside_now = beside
        self._beside: Piece | None = beside() if beside else None
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._shown_s = time.monotonic()
        # What another thread displays belongs to no cell, unless it does so in this one's context.
        self._context = contextvars.copy_context()
        self._handle: Any = display(self._bundle(), raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def say(self, line: str) -> None:
        """Add a line, and look again at what stands above."""
        with self._lock:
            self._lines.append(without_folders(line, self._within))
            if self._beside_now is not None:
                self._beside = self._beside_now()
            self.refresh()

    def refresh(self) -> None:
        """Show how everything stands now."""
        with self._lock:
            self._shown_s = time.monotonic()
            self._context.run(self._handle.update, self._bundle(), raw=True)

    def _show(self, task: Task) -> None:
        if time.monotonic() - self._shown_s >= _EVERY_S or task not in self._tasks:
            self.refresh()

    def _bundle(self) -> dict[str, Any]:
        standings = self.standings()
        parts = [self._beside.markup] if self._beside else []
        parts += map(_bar, standings)
        if self._lines:
            parts.append(listing("\n".join(self._lines)).markup)
        now = standings[-1].sentence() if standings else ""
        last = self._lines[-1] if self._lines else ""
        text = "\n".join(
            [*([self._beside.text] if self._beside else []), *self._lines, *([now] if now else [])]
        )
        return {
            "text/html": styled(joined(parts)),
            "text/plain": text or "nothing yet",
            PROGRESS_MIME: {"line": last, "now": now},
        }


@contextmanager
def notebook_progress(
    beside: Callable[[], Piece] | None = None, within: Sequence[Path] = ()
) -> Iterator[NotebookProgress]:
    """Show the progress of a block in the cell's output."""
    progress = NotebookProgress(beside, within)
    try:
        yield progress
    finally:
        progress.refresh()


def without_folders(line: str, folders: Sequence[Path]) -> str:
    """Make paths within some folders relative to them."""
    for folder in folders:
        line = line.replace(f"{folder}/", "")
    return line


def _bar(standing: Standing) -> Markup:
    words = element("span", standing.sentence())
    numbers = (
        {} if standing.total is None else {"max": str(max(standing.total, 1)), "value": str(standing.done)}
    )
    bar = element("progress", "", aria_label=standing.name, **numbers)
    return element("div", joined([bar, words], " "))
