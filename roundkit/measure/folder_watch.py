"""What happened in a folder while a trial ran: the kernel tells the coordinator, outside the boundary."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from roundkit.measure.broke import MeasurementBroke

MODIFIED = 0x002
CLOSED = 0x008
"""A descriptor that could write was closed."""
OPENED = 0x020
MOVED_AWAY = 0x040
MOVED_HERE = 0x080
CREATED = 0x100
DELETED = 0x200
OVERFLOWED = 0x4000
"""More happened than the kernel kept."""

_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 16


class FolderWatch:
    """Watches one folder, not the folders below it.

    The kernel merges equal events that follow one another, so a mask of one kind alone counts too few.

    Args:
        folder: The folder.
        mask: What to listen to.

    Raises:
        MeasurementBroke: ``result-watch``: the kernel has no watch left to give.
    """

    def __init__(self, folder: Path, mask: int) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise MeasurementBroke("result-watch", f"inotify: {os.strerror(ctypes.get_errno())}")
        if self._libc.inotify_add_watch(self._fd, os.fsencode(folder), mask) < 0:
            os.close(self._fd)
            raise MeasurementBroke("result-watch", f"inotify: {os.strerror(ctypes.get_errno())}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def events(self) -> Iterator[tuple[int, bytes]]:
        """Yield what happened since the last call, in order: what, and the name of the file."""
        while data := self._read():
            place = 0
            while place < len(data):
                _, mask, _, length = _EVENT.unpack_from(data, place)
                place += _EVENT.size + length
                yield mask, data[place - length : place].rstrip(b"\0")

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return b""
