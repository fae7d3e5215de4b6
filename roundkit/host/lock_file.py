"""Lock files that every user of a host can open, and take for one process at a time."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from pathlib import Path

from roundkit.core.errors import refuse

# A reader of `roundkit leases` touches a lock for some microseconds; that must not look like a holder.
_TRIES = 4
_RETRY_S = 0.002


def take_lock(path: Path) -> int | None:
    """Open a lock file, made where it is missing, and lock it; None where somebody else holds it.

    Raises:
        Refused: ``lease-file``: it cannot be opened or is no regular file.
    """
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_RETRY_S)
        lock = open_lock(path, create=True)
        if lock is None:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        if is_file_at(lock, path):  # else removed between open and lock: nobody else would see this lock
            return lock
        os.close(lock)
    return None


def open_lock(path: Path, *, create: bool) -> int | None:
    """Open a lock file, another user's too; None where it is not there (any more).

    Raises:
        Refused: ``lease-file``: it cannot be opened or is no regular file.
    """
    flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        lock = _open_existing(path, flags)
    except FileNotFoundError:
        if not create:
            return None
        try:
            lock = os.open(path, flags | os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            os.fchmod(lock, 0o666)
        except FileExistsError:
            return None
        except OSError as error:
            raise _file_refusal(path, error.strerror or "") from error
    except OSError as error:
        raise _file_refusal(path, error.strerror or "") from error
    if not stat.S_ISREG(os.fstat(lock).st_mode):
        os.close(lock)
        raise _file_refusal(path, "not a regular file")
    return lock


def _open_existing(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_RDWR)
    except PermissionError:
        return os.open(path, flags | os.O_RDONLY)  # enough for the lock, not for the note


def _file_refusal(path: Path, why: str) -> Exception:
    return refuse(
        "lease-file", f"the lease file {path} cannot be used: {why}", remedy="remove it, or mend its mode"
    )


def is_file_at(lock: int, path: Path) -> bool:
    """Say whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(lock), path.stat(follow_symlinks=False))
    except OSError:
        return False
