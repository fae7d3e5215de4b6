"""A gater that dies by SIGKILL: ``python -m support.killed_gater WHEN WAVE_DIR``.

WHEN is a state that a run comes to, ``rename N``: before the N-th file is renamed into its place, or
``start N``: before the N-th process is started.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from pathlib import Path

from roundkit.waves.gater import run_gater

_EVENTS = {"rename": "os.rename", "start": "subprocess.Popen"}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


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
    state = sys.argv[1]
    sys.exit(run_gater(Path(sys.argv[2]), mark=lambda reached: die() if reached == state else None))
