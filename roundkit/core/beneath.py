"""Opening a path without ever leaving a folder or following a link: ``openat2`` with its resolve flags."""

from __future__ import annotations

import ctypes
import os
import struct
from functools import cache

_SYS_OPENAT2 = 437

NO_XDEV = 0x01
NO_MAGICLINKS = 0x02
NO_SYMLINKS = 0x04
BENEATH = 0x08

_OPEN_HOW = struct.Struct("=QQQ")
"""The kernel's ``struct open_how``: flags, mode, resolve."""


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def openat2(dir_fd: int, path: str | bytes, flags: int, resolve: int) -> int:
    """Open ``path`` relative to ``dir_fd``; the descriptor is closed on exec.

    Args:
        dir_fd: Directory to start from; ``-100`` (``AT_FDCWD``) for an absolute path.
        path: Path to open.
        flags: As for :func:`os.open`.
        resolve: Bits of :data:`BENEATH`, :data:`NO_SYMLINKS`, :data:`NO_MAGICLINKS`, :data:`NO_XDEV`.

    Raises:
        OSError: As the kernel says; ``ELOOP`` for a link, ``EXDEV`` for a way out of the folder.
    """
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError("a path cannot contain a null byte")
    how = _OPEN_HOW.pack(flags | os.O_CLOEXEC, 0, resolve)
    fd: int = _libc().syscall(_SYS_OPENAT2, dir_fd, name, how, len(how))
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fsdecode(name))
    return fd
