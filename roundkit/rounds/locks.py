"""One serve and one close per round: a lock that the kernel releases when its holder dies."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from roundkit.core.canonical import canonical_bytes
from roundkit.core.errors import refuse


@contextmanager
def hold_lock(path: Path, *, code: str, what: str) -> Iterator[None]:
    """Hold a process lock for the duration of a block.

    Raises:
        Refused: with ``code``, naming the holder's pid and start time.
    """
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise refuse(
            code,
            f"{what} is running already: {describe_holder(path)}",
            place=str(path),
            remedy="wait for it, or stop that process",
        ) from error
    try:
        started = psutil.Process().create_time()
        _holder_file(path).write_bytes(canonical_bytes({"pid": os.getpid(), "started": started}))
        yield
    finally:
        lock.release()


def is_held(path: Path) -> bool:
    """Say whether some process holds the lock now."""
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    lock.release()
    return False


def describe_holder(path: Path) -> str:
    """Name the pid and start time of the last holder."""
    try:
        holder = json.loads(_holder_file(path).read_bytes())
        return f"pid {holder['pid']}, started at {holder['started']:.0f} s since the epoch"
    except (OSError, ValueError, KeyError, TypeError):
        return "by an unknown process"


def _holder_file(path: Path) -> Path:
    return path.with_suffix(".holder")
