"""Waiting for a lane's earlier agent: one whose coordinator died may take a moment to die after it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from roundkit.core.errors import refuse

_WITHIN_S = 20.0
_POLL_S = 0.05


def await_nobody(clone: Path) -> None:
    """Wait until no process has a lane's clone mounted, so that two agents never work in one lane.

    Raises:
        Refused: ``lane-busy``: one is still there.
    """
    until = time.monotonic() + _WITHIN_S
    while pids := _at_work_in(clone):
        if time.monotonic() > until:
            raise refuse(
                "lane-busy",
                f"process {', '.join(map(str, pids))} still works in {clone}",
                place=str(clone),
                remedy="end what started it, and launch again",
            )
        time.sleep(_POLL_S)


def _at_work_in(clone: Path) -> list[int]:
    """Return who sees the clone as a mount: inside the boundary it lies at its own path."""
    mount_point = os.fsencode(clone).replace(b" ", b"\\040")
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            lines = (entry / "mountinfo").read_bytes().splitlines()
        except OSError:
            continue
        # While a boundary is being built, everything lies below a folder of bubblewrap's.
        if any(line.split(b" ", 5)[4].endswith(mount_point) for line in lines):
            found.append(int(entry.name))
    return found
