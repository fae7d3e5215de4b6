"""Counting the instructions of one run, with the round's tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from roundkit.measure.instruments.perf import PerfCount
from roundkit.measure.instruments.tools import tool_version
from roundkit.measure.instruments.valgrind import CountFolder
from roundkit.models.instruments import CountingTool, InstructionCount


@dataclass(frozen=True)
class Counting:
    """What one run is counted with.

    Attributes:
        before_start: Called with the command's process id, seen from outside, while it waits at its gate.
        count: Gives the count once everything has ended; null where nothing is counted. Raises
            ``CountProblem`` and ``MeasurementBroke``.
    """

    before_start: Callable[[int], None] | None = None
    count: Callable[[], InstructionCount] | None = None


@contextmanager
def counting(tool: CountingTool | None, folder: Path) -> Iterator[Counting]:
    """Count what runs inside the block.

    Args:
        tool: The round's counting tool; null counts nothing.
        folder: The folder, on the host, that valgrind writes into.

    Raises:
        MeasurementBroke: ``instrument-missing``: the tool is not here.
    """
    if tool is None:
        yield Counting()
    elif tool == "valgrind":
        with CountFolder(folder) as counts:
            yield Counting(count=counts.count)
    else:
        with PerfCount() as perf:
            yield Counting(perf.attach, lambda: _by_hardware(perf))


def _by_hardware(perf: PerfCount) -> InstructionCount:
    return InstructionCount(tool="perf", version=tool_version(perf.path), total=perf.count())
