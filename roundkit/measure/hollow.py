"""Holes: bytes of files that take nothing on this disk, and are read, sent and digested all the same."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

_BLOCK_BYTES = 512


def hollow_bytes(entries: Iterable[os.stat_result]) -> int:
    """Return by how many bytes files are larger than what they take on the disk, all of them together."""
    return sum(map(_hollow, entries))


def _hollow(found: os.stat_result) -> int:
    taken = found.st_blocks * _BLOCK_BYTES
    return max(0, found.st_size - taken) if stat.S_ISREG(found.st_mode) else 0
