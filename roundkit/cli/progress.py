"""How the commands show long work: bars in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from roundkit.core.progress import PlainProgress, Progress, Task
from roundkit.core.text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars


_ROOM_FOR_THE_RATE = 100
"""Columns from which on a row shows its rate beside the time left; with fewer, counts would be cut off."""

_BESIDE_A_NAME = 47
"""Columns that bar, counts and time left need, beside a name and a unit."""


@contextmanager
def shown_progress(*, stderr: bool = False) -> Iterator[Progress]:
    """Show the progress of a block: bars above the prompt of a terminal, else a plain line every so often.

    Args:
        stderr: On standard error, where standard output is for results alone.
    """
    from rich.console import Console

    # Not what rich thinks: a notebook's kernel asks for colour, and what it starts writes to a file.
    if not (sys.stderr if stderr else sys.stdout).isatty():
        yield PlainProgress(lambda line: typer.echo(visible(line), err=stderr))
        return
    bars = _bars(Console(stderr=stderr))
    with bars:
        yield TerminalProgress(bars)


class TerminalProgress(Progress):
    """Bars at the bottom of a terminal; what happened scrolls by above them."""

    def __init__(self, bars: Bars) -> None:
        super().__init__()
        self._bars = bars
        self._rows: dict[int, int] = {}

    def say(self, line: str) -> None:
        """Print the line above the bars."""
        from rich.text import Text

        self._bars.console.print(Text(visible(line)))

    def _show(self, task: Task) -> None:
        row = self._rows.get(id(task))
        if task not in self._tasks:
            if row is not None:
                self._bars.remove_task(self._rows.pop(id(task)))  # type: ignore[arg-type]
            return
        width = self._bars.console.width
        pace = ", ".join(task.standing().pace()[-1 if width < _ROOM_FOR_THE_RATE else 0 :])
        if row is None:
            room = width - _BESIDE_A_NAME - len(task.unit)
            name = _shortened(visible(task.name), max(width // 4, min(width // 3, room)))
            row = self._rows[id(task)] = self._bars.add_task(
                name, total=task.total, unit=task.unit, pace=pace
            )
        self._bars.update(row, completed=task.done, total=task.total, pace=pace)  # type: ignore[arg-type]


def _shortened(name: str, most: int) -> str:
    """Return a name without the middle of a long one, which the names of a round have in common."""
    head = most // 4
    return name if len(name) <= most else f"{name[:head]}…{name[head + 1 - most :]}"


def _bars(console: Console) -> Bars:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars

    return Bars(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}", markup=False),
        TextColumn("{task.fields[pace]}", markup=False),
        console=console,
        transient=True,
        expand=True,
    )
