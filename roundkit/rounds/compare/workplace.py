"""The folder in which a comparison works, removed at its end; what a killed one left is removed as well."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from roundkit.core.errors import RoundkitError
from roundkit.measure.trees import remove_tree

_PREFIX = "roundkit-measure-"


@contextmanager
def workplace() -> Iterator[Path]:
    """Make a folder below the one for temporary files, and remove it afterwards.

    Raises:
        RoundkitError: no room was left for what was written there.
        OSError: it cannot be made.
    """
    top = Path(tempfile.gettempdir()).resolve()
    _remove_left_behind(top)
    work = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=top))
    # Passable, not readable: a confined command reaches what it is given as a user of its own.
    work.chmod(0o711)
    try:
        yield work
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RoundkitError(no_room(work)) from error
        raise
    finally:
        remove_tree(work)


def no_room(work: Path) -> str:
    """Say where there was no room, and how to work elsewhere."""
    return f"no space is left for the copies in {work}; TMPDIR names a folder on another disk"


def _remove_left_behind(top: Path) -> None:
    for folder in top.glob(f"{_PREFIX}*"):
        pid = folder.name.removeprefix(_PREFIX).split("-")[0]
        mine = not folder.is_symlink() and folder.is_dir() and folder.stat().st_uid == os.geteuid()
        if mine and pid.isdigit() and not psutil.pid_exists(int(pid)):
            remove_tree(folder)
