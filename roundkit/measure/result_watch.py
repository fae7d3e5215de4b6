"""Counting how often a trial's result file was written.

In a single-process benchmark the candidate shares the process that reports, so it can write the result
itself: before the benchmark does, or after it. The kernel tells the coordinator of every write; a result
that was not written exactly once is not believed. This catches the plain ways only: the benchmark stays
forgeable, and a driver that holds the result is the remedy.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from roundkit.measure.broke import MeasurementBroke

_IN_MODIFY = 0x002
_IN_CLOSE_WRITE = 0x008
_IN_OPEN = 0x020
_IN_MOVED_TO = 0x080
_IN_CREATE = 0x100
_IN_Q_OVERFLOW = 0x4000
_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 16


class ResultWatch:
    """Watches one folder while a trial runs, from outside the boundary.

    Args:
        folder: The folder in which the result appears.
        name: Name of the result file.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._name = os.fsencode(name)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise MeasurementBroke("result-watch", f"inotify: {os.strerror(ctypes.get_errno())}")
        # Opening is listened to only because the kernel merges equal events that follow one another.
        mask = _IN_MODIFY | _IN_CLOSE_WRITE | _IN_OPEN | _IN_MOVED_TO | _IN_CREATE
        if self._libc.inotify_add_watch(self._fd, os.fsencode(folder), mask) < 0:
            os.close(self._fd)
            raise MeasurementBroke("result-watch", f"inotify: {os.strerror(ctypes.get_errno())}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def problem(self) -> str | None:
        """Say what is wrong with the way in which the result came about; call once, after the trial."""
        finished, created = 0, 0
        while data := self._read():
            for mask, name in _events(data):
                if mask & _IN_Q_OVERFLOW:
                    return "too much happened in the trial folder to tell who wrote the result"
                if name != self._name:
                    continue
                if finished and mask & _IN_MODIFY:
                    return "the result was changed after it was finished"
                finished += bool(mask & (_IN_CLOSE_WRITE | _IN_MOVED_TO))
                created += bool(mask & (_IN_CREATE | _IN_MOVED_TO))
        if finished > 1 or created > 1:
            return f"the result was written {max(finished, created)} times; a benchmark writes it once"
        return None

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return b""


def _events(data: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place < len(data):
        _, mask, _, length = _EVENT.unpack_from(data, place)
        place += _EVENT.size + length
        yield mask, data[place - length : place].rstrip(b"\0")
