"""The words that stand before the benchmark command while its instructions are counted."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

from roundkit.models.instruments import CountingTool

COUNT = Path("/round/count")
"""Where valgrind leaves its counts, inside the boundary."""

_VALGRIND = (
    "valgrind",
    # No file in the working folder and no variable may change an option, of a child either.
    "--command-line-only=yes",
    "--tool=cachegrind",
    "--cache-sim=no",
    "--branch-sim=no",
    "--trace-children=yes",
    "--trace-children-skip=",
    "--trace-children-skip-by-arg=",
    "--child-silent-after-fork=no",
    "--vgdb=no",
    f"--log-file={COUNT}/%p.log",
    f"--cachegrind-out-file={COUNT}/%p.out",
)


def counted_command(tool: CountingTool, argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command as it runs inside: with a fixed address-space layout, under its tool.

    ``perf`` needs no word of its own: it attaches from outside.
    """
    fixed_layout = ("setarch", platform.machine(), "-R")
    return (*fixed_layout, *(_VALGRIND if tool == "valgrind" else ()), *argv)
