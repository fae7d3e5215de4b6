"""``python -m support.killed_pilot MODULE FUNCTION PILOT_DIR RUN``: SIGKILL when it calls one."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from pathlib import Path

from roundkit.pilots.policy.run import run_policy


def main() -> None:
    module, function, folder, only = sys.argv[1:]
    owner = import_module(module)
    *parents, name = function.split(".")
    for parent in parents:
        owner = getattr(owner, parent)

    def killed(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, killed)
    run_policy(Path(folder), only=only, report=lambda line: print(line, flush=True))


if __name__ == "__main__":
    main()
