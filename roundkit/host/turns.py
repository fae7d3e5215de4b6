"""Turns at a device: who waits for one longest is next, whatever round, user or program it is.

A lease alone goes to whoever asks at the right moment, which is always the one who just let go of it. A turn
is a file beside the leases, locked by the one who waits, so that it ends with its process. Who waits renews
it; one that was not renewed for a while is passed over, so that a stopped process keeps nobody waiting.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

_SUFFIX = ".turn"
_PASSED_OVER_S = 5.0


class Turn:
    """A place in the line for a set of devices, until :meth:`leave` or the end of this process.

    Args:
        prefixes: For each device, the path that the files of its line begin with.

    Raises:
        OSError: a file cannot be made.
    """

    def __init__(self, prefixes: Sequence[Path]) -> None:
        # Counted from the host's start: the same clock for every process, and nobody sets it.
        self.since_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self._files: dict[Path, int] = {}
        for prefix in prefixes:
            path = prefix.with_name(f"{prefix.name}.{self.since_ns:020d}.{os.getpid()}{_SUFFIX}")
            # Locked under another name first, so that nobody takes it for a dead one's.
            hidden = path.with_name(f".{path.name}")
            lock = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            hidden.rename(path)
            self._files[path] = lock

    def renew(self) -> None:
        """Say that its owner still waits."""
        for path in self._files:
            with suppress(OSError):
                os.utime(path)

    def leave(self) -> None:
        """Leave the line; a second call does nothing."""
        while self._files:
            path, lock = self._files.popitem()
            with suppress(OSError):
                path.unlink()
            os.close(lock)


def somebody_is_first(prefixes: Sequence[Path], turn: Turn | None) -> bool:
    """Say whether somebody has waited for one of the devices longer than the owner of a turn.

    Args:
        prefixes: For each device, the path that the files of its line begin with.
        turn: The asker's own; None for one who did not wait at all, who comes after everybody.
    """
    own = turn.since_ns if turn is not None else None
    return any(own is None or since < own for prefix in prefixes for since in _waiting_since(prefix))


def _waiting_since(prefix: Path) -> Iterator[int]:
    for path in prefix.parent.glob(f"{prefix.name}.*{_SUFFIX}"):
        try:
            since_ns = int(path.name.removeprefix(f"{prefix.name}.").split(".")[0])
            lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.time() - os.fstat(lock).st_mtime < _PASSED_OVER_S:
                yield since_ns
        else:
            with suppress(OSError):
                path.unlink()  # its owner died
        finally:
            os.close(lock)
