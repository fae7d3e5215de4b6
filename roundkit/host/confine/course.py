"""What happened to one confined command, written down while it runs."""

from __future__ import annotations

from dataclasses import dataclass

from roundkit.host.confine.types import Counter, EndReason


@dataclass
class Course:
    """What happened to one command, as far as it is known.

    Attributes:
        reason: Why it was ended from outside, None if it ended by itself.
        detail: More about the reason.
        status: Exit status as bubblewrap reports it: 128 + n for signal n; None if it was ended.
        command_status: Wait status of the command itself, where the kernel tells it.
        started: Whether the command was let go.
        missing: Whether there was no such command inside.
        wall_s: Seconds from the gate to the end.
        cpu_s: CPU seconds of the run.
        cpu_source: Where they were read.
    """

    reason: EndReason | None = None
    detail: str = ""
    status: int | None = None
    command_status: int | None = None
    started: bool = False
    missing: bool = False
    wall_s: float | None = None
    cpu_s: float | None = None
    cpu_source: Counter | None = None
