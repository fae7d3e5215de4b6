"""A gater that dies by SIGKILL: ``python -m support.killed_gater WHEN WAVE_DIR``.

WHEN is a state that it says (the end of a line), ``rename N``: before the N-th file is renamed into its
place, or ``start N``: before the N-th process is started.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from pathlib import Path

from roundkit.core.progress import Progress
from roundkit.waves.gate_run import run_gater

_EVENTS = {"rename": "os.rename", "start": "subprocess.Popen"}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class _Deadly(Progress):
    def __init__(self, state: str) -> None:
        super().__init__()
        self._state = state

    def say(self, line: str) -> None:
        print(line, flush=True)
        if line.endswith(self._state):
            die()


def kill_at(event: str, number: int) -> None:
    """Die right before the n-th time that something happens."""
    count = itertools.count(1)

    def hook(heard: str, _: tuple[object, ...]) -> None:
        if heard == event and next(count) == number:
            die()

    sys.addaudithook(hook)


if __name__ == "__main__":
    what, _, number = sys.argv[1].partition(" ")
    if what in _EVENTS:
        kill_at(_EVENTS[what], int(number))
    sys.exit(run_gater(Path(sys.argv[2]), progress=_Deadly(sys.argv[1])))
