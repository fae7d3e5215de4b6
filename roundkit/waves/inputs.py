"""The files of the tree that draft agents need: found and copied without following a link out of it."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from roundkit.core.beneath import BENEATH, NO_MAGICLINKS, NO_SYMLINKS, openat2
from roundkit.measure.trees import make_parents
from roundkit.models.wave_records import Key, Target

_RESOLVE = BENEATH | NO_SYMLINKS | NO_MAGICLINKS
_READABLE = 0o644


def missing_inputs(tree: Path, targets: Iterable[Target]) -> set[Key]:
    """Return the keys of the targets whose input is no regular file of the tree."""
    missing = set()
    with _opened(tree) as top:
        for target in targets:
            try:
                handle = openat2(top, target.input, os.O_PATH, _RESOLVE)
            except OSError:
                missing.add(target.key)
                continue
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                missing.add(target.key)
            os.close(handle)
    return missing


def copy_inputs(tree: Path, targets: Iterable[Target], folder: Path) -> None:
    """Copy the inputs of some targets into a folder, under their paths in the tree.

    One that has gone since it was drawn is left out: its agent finds nothing there.

    Raises:
        OSError: a copy cannot be written.
    """
    with _opened(tree) as top:
        for path in dict.fromkeys(target.input for target in targets):
            with suppress(FileNotFoundError, NotADirectoryError):
                _copy(top, path, folder)


def _copy(top: int, path: str, folder: Path) -> None:
    source = openat2(top, path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY, _RESOLVE)
    with os.fdopen(source, "rb") as reading:
        if not stat.S_ISREG(os.fstat(source).st_mode):
            return
        make_parents(folder, path)
        with (folder / path).open("xb") as writing:
            shutil.copyfileobj(reading, writing)
            os.fchmod(writing.fileno(), _READABLE)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    top = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield top
    finally:
        os.close(top)
