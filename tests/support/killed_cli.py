"""Runs roundkit's own command line and kills this process at its n-th recorded transition.

``python -m support.killed_cli N serve ROUND_DIR``: SIGKILL right after the N-th committed transaction of a
store, or before the first file that is renamed into its place after that, whichever the sign of N says: a
negative N counts renames. ``MODULE:FUNCTION:N`` in its place: at the N-th call of a function by that module.
"""

from __future__ import annotations

import importlib
import itertools
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


def kill_at_call(module: str, function: str, number: int) -> None:
    """Die in place of the n-th call of a function, under the name that a module has for it."""
    found, count = importlib.import_module(module), itertools.count(1)
    original = getattr(found, function)

    def called(*arguments: Any, **named: Any) -> Any:
        if next(count) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **named)

    setattr(found, function, called)


def kill_at(where: str) -> None:
    """Die where the first word of the command line says."""
    if ":" in where:
        module, function, number = where.split(":")
        kill_at_call(module, function, int(number))
    elif int(where) > 0:
        kill_after_commit(int(where))
    else:
        kill_before_rename(-int(where))


if __name__ == "__main__":
    kill_at(sys.argv[1])
    sys.argv = ["roundkit", *sys.argv[2:]]
    main()
