"""What a trial is measured with, and what a counting tool said of one trial."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from roundkit.models.base import Count, Record

Instrument = Literal["reported", "wall", "cpu", "instructions", "peak-memory"]
CountingTool = Literal["perf", "valgrind"]
"""How instructions are counted: by the hardware through ``perf stat``, or by valgrind's cachegrind."""

UNITS: dict[Instrument, str] = {"instructions": "instructions", "peak-memory": "bytes"}
"""Instruments whose metric has one unit only."""

INSTRUCTIONS_SAY_NOTHING = "instructions say nothing about caches, I/O, waiting or the GPU"
"""Stands wherever such a figure is shown."""


class ProcessCount(Record):
    """Instructions that one process executed; the number is its process id inside the boundary.

    Attributes:
        pid: Process id, inside the boundary.
        instructions: Instructions that it executed.
    """

    pid: Annotated[int, Field(ge=1)]
    instructions: Count


class InstructionCount(Record):
    """Instructions in user space of the process that runs the candidate and of all that it started.

    Attributes:
        tool: What counted.
        version: The tool's version, as it prints it.
        total: All processes together; the figure that decides.
        processes: One row a process where the tool tells them apart (valgrind), by process id.
    """

    tool: CountingTool
    version: str
    total: Annotated[int, Field(ge=1)]
    processes: tuple[ProcessCount, ...] = ()
