"""Watching what a running command uses on disk."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from roundkit.host.confine.places import Place
from roundkit.host.confine.process import descendants
from roundkit.host.confine.types import Limits

_BLOCK_BYTES = 512
_DEEPEST = 256
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK_EVERY_S = 0.1
_SHARE_OF_TIME = 0.1


@dataclass
class _Usage:
    size_bytes: int = 0
    files: int = 0
    too_deep: bool = False
    seen: set[tuple[int, int]] = field(default_factory=set)

    def count(self, found: os.stat_result) -> None:
        """Count a file once, by whatever name or descriptor it is met."""
        if found.st_nlink != 1 and not stat.S_ISDIR(found.st_mode):
            key = (found.st_dev, found.st_ino)
            if key in self.seen:
                return
            self.seen.add(key)
        self.size_bytes += found.st_blocks * _BLOCK_BYTES
        self.files += 1


class DiskWatch:
    """Compares the growth of the writable places with the limits, now and then.

    It spends about a tenth of one CPU at most: the larger the places, the rarer it looks. What one file
    can grow to in between is bounded by ``file_bytes``. :meth:`begin` takes the size before the command.

    Args:
        places: The granted places.
        limits: ``disk_bytes`` and ``disk_files`` count here.
        private: Private file systems inside, whose files count as well.
    """

    def __init__(self, places: Sequence[Place], limits: Limits, private: Sequence[str]) -> None:
        self._places = places
        self._tops: Sequence[Place] = ()
        self._limits = limits
        self._private = private
        self.wanted = limits.disk_bytes is not None or limits.disk_files is not None
        self._before = _Usage()
        self._next_s = 0.0

    def begin(self) -> None:
        """Measure what is there before the command starts."""
        if self.wanted:
            writable = [place for place in self._places if place.writable]
            self._tops = [place for place in writable if not any(_holds(other, place) for other in writable)]
            self._before = self._measure(None)

    def exceeded(self, init_pid: int | None) -> str | None:
        """Say what grew too much; None if nothing did, or if it is not yet time to look again.

        Args:
            init_pid: Init of the command's process namespace, None once it is gone.
        """
        started = time.monotonic()
        if not self.wanted or (init_pid is not None and started < self._next_s):
            return None
        usage = self._measure(init_pid)
        spent = time.monotonic() - started
        self._next_s = started + max(_LOOK_EVERY_S, spent / _SHARE_OF_TIME)
        grown_bytes = usage.size_bytes - self._before.size_bytes
        grown_files = usage.files - self._before.files
        limits = self._limits
        if usage.too_deep:
            return f"a writable place has folders nested deeper than {_DEEPEST}"
        if limits.disk_bytes is not None and grown_bytes > limits.disk_bytes:
            return f"the writable places grew by {grown_bytes} bytes, more than {limits.disk_bytes}"
        if limits.disk_files is not None and grown_files > limits.disk_files:
            return f"the writable places gained {grown_files} files, more than {limits.disk_files}"
        return None

    def _measure(self, init_pid: int | None) -> _Usage:
        usage = _Usage()
        for place in self._tops:
            usage.count(os.fstat(place.fd))
            if place.is_dir:
                top = os.open(f"/proc/self/fd/{place.fd}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                _add_folder(top, _DEEPEST, usage)
        if init_pid is not None:
            _add_deleted(init_pid, usage)
            for at in self._private:
                with contextlib.suppress(OSError):
                    held = os.statvfs(f"/proc/{init_pid}/root{at}")
                    usage.files += held.f_files - held.f_ffree
        return usage


def _holds(outer: Place, inner: Place) -> bool:
    return outer is not inner and inner.source != outer.source and inner.source.is_relative_to(outer.source)


def _add_folder(folder: int, levels: int, usage: _Usage) -> None:
    """Add what a folder holds, while the command may be changing it; closes the descriptor."""
    below: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                usage.count(found)
                if stat.S_ISDIR(found.st_mode):
                    below.append(entry.name)
        if below and not levels:
            usage.too_deep = True
            return
        for name in below:
            with contextlib.suppress(OSError):
                _add_folder(os.open(name, _DIRECTORY, dir_fd=folder), levels - 1, usage)
    finally:
        os.close(folder)


def _add_deleted(init_pid: int, usage: _Usage) -> None:
    """Add files that have no name any more and still take space, because a process holds them open."""
    for pid in descendants(init_pid):
        with contextlib.suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    found = descriptor.stat()
                    if stat.S_ISREG(found.st_mode) and not found.st_nlink:
                        usage.count(found)
