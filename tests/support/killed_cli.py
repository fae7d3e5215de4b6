"""Runs roundkit's own command line and kills this process at its n-th recorded transition.

``python -m support.killed_cli N serve ROUND_DIR``: SIGKILL right after the N-th committed transaction of a
store, or before the first file that is renamed into its place after that, whichever the sign of N says: a
negative N counts renames.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roundkit.cli import main
from roundkit.store import RoundStore


def kill_after_commit(number: int) -> None:
    """Die right after the n-th transaction has been committed."""
    original, count = RoundStore.transaction, itertools.count(1)

    @contextmanager
    def transaction(store: RoundStore) -> Iterator[None]:
        with original(store):
            yield
        if next(count) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    RoundStore.transaction = transaction  # type: ignore[method-assign]


def kill_before_rename(number: int) -> None:
    """Die right before the n-th file or folder is renamed into its place."""
    count = itertools.count(1)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event != "os.rename" or Path(str(arguments[1])).name.startswith("."):
            return  # a hidden name is no place: that is how folders are removed
        if next(count) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


if __name__ == "__main__":
    where = int(sys.argv[1])
    kill_after_commit(where) if where > 0 else kill_before_rename(-where)
    sys.argv = ["roundkit", *sys.argv[2:]]
    main()
