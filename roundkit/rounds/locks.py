"""One serve and one close per round: a lock that the kernel releases when its holder dies."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from roundkit.core.canonical import canonical_bytes
from roundkit.core.clock import format_utc
from roundkit.core.errors import refuse

# Whoever asks whether a lock is held touches it for microseconds; that must not look like a holder.
_LOOK_AGAIN_S = 0.5
_POLL_S = 0.01


@contextmanager
def hold_lock(
    path: Path, *, code: str, what: str, remedy: str = "wait for it, or stop that process"
) -> Iterator[None]:
    """Hold a process lock for the duration of a block.

    Raises:
        Refused: with ``code``, naming the holder's pid and start time.
    """
    lock = FileLock(path)
    try:
        lock.acquire(timeout=_LOOK_AGAIN_S, poll_interval=_POLL_S)
    except Timeout as error:
        raise refuse(
            code,
            f"{what} is running already: {describe_holder(path)}",
            place=str(path),
            remedy=remedy,
        ) from error
    try:
        started = psutil.Process().create_time()
        _holder_file(path).write_bytes(canonical_bytes({"pid": os.getpid(), "started": started}))
        yield
    finally:
        lock.release()


def is_held(path: Path) -> bool:
    """Say whether some process holds the lock now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def is_held_by(path: Path, pid: int) -> bool:
    """Say whether that process holds the lock now."""
    try:
        return bool(json.loads(_holder_file(path).read_bytes())["pid"] == pid) and is_held(path)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def describe_holder(path: Path) -> str:
    """Name the pid and start time of the last holder."""
    try:
        holder = json.loads(_holder_file(path).read_bytes())
        return f"pid {holder['pid']}, started at {format_utc(datetime.fromtimestamp(holder['started'], UTC))}"
    except (OSError, ValueError, KeyError, TypeError):
        return "by an unknown process"


def _holder_file(path: Path) -> Path:
    return path.with_suffix(".holder")
