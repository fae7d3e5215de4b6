"""A file of lines that several processes append to: created once, never followed through a link, locked."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from roundkit.core.beneath import BENEATH, NO_MAGICLINKS, NO_SYMLINKS, openat2
from roundkit.core.errors import refuse
from roundkit.core.files import write_new

_CHUNK_BYTES = 1 << 16
_NO_LINKS = BENEATH | NO_SYMLINKS | NO_MAGICLINKS


def create_exclusively(path: Path, data: bytes = b"") -> None:
    """Write a file that nobody has written before; what is there, a link too, is never touched.

    Raises:
        Refused: ``exists``.
        OSError: the folder is missing or cannot be written.
    """
    try:
        write_new(path, data)
    except FileExistsError as error:
        raise refuse(
            "exists",
            f"{path.name} exists already and is never written twice",
            place=path.name,
            remedy="leave it as it is: it is part of the record",
        ) from error


def append_line(root: Path, name: str, make: Callable[[bytes], bytes], *, limit: int) -> bytes:
    """Append one line under an advisory lock that is held from reading to writing.

    Args:
        root: A folder.
        name: The file's path below it; no part of it may be a link.
        make: Takes the file's bytes and returns the line to append, without its end; may refuse.
        limit: Bytes that the file may have.

    Returns:
        The line.

    Raises:
        Refused: ``missing-file``, ``not-a-file``, ``hard-linked``, ``foreign-file``, ``too-large``,
            ``replaced``, or what ``make`` refuses.
    """
    with _locked(root, name) as descriptor:
        known = _read(descriptor, limit, name)
        line = make(known)
        if len(known) + len(line) + 1 > limit:
            raise refuse("too-large", f"{name} would have more than {limit} bytes", place=name)
        _write(descriptor, line + b"\n")
        os.fsync(descriptor)
    return line


@contextmanager
def held_lines(root: Path, name: str, *, limit: int) -> Iterator[bytes]:
    """Hold the lock of a file of lines, so that nobody appends meanwhile, and give its bytes.

    Raises:
        Refused: as :func:`append_line`.
    """
    with _locked(root, name) as descriptor:
        yield _read(descriptor, limit, name)


@contextmanager
def _locked(root: Path, name: str) -> Iterator[int]:
    with _opened(root, name) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        _check(root, name, descriptor)
        yield descriptor


@contextmanager
def _opened(root: Path, name: str) -> Iterator[int]:
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        descriptor = openat2(folder, name, os.O_RDWR | os.O_APPEND | os.O_NONBLOCK, _NO_LINKS)
    except FileNotFoundError as error:
        raise refuse("missing-file", f"there is no {name}", place=name) from error
    except OSError as error:
        raise refuse(
            "not-a-file",
            f"{name} is a link, lies behind one, or cannot be opened: {error.strerror}",
            place=name,
        ) from error
    finally:
        os.close(folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _check(root: Path, name: str, descriptor: int) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise refuse("not-a-file", f"{name} is not a regular file", place=name)
    if found.st_nlink != 1:
        raise refuse("hard-linked", f"{name} has {found.st_nlink} names", place=name)
    if found.st_uid != os.geteuid():
        raise refuse("foreign-file", f"{name} belongs to user {found.st_uid}", place=name)
    if not os.path.samestat(found, (root / name).lstat()):
        raise refuse("replaced", f"{name} was replaced while it was being opened", place=name)


def _read(descriptor: int, limit: int, name: str) -> bytes:
    pieces, size = [], 0
    while piece := os.pread(descriptor, _CHUNK_BYTES, size):
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise refuse("too-large", f"{name} has more than {limit} bytes", place=name)
    return b"".join(pieces)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
