"""The one atomic writer, and folder digests that do not follow links."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from roundkit.core.canonical import canonical_bytes, digest_bytes, digest_file, digest_json
from roundkit.core.errors import RoundkitError

_PROBE_BYTES = 1 << 16
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
for _flag in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"):
    _NEW_FILE |= getattr(os, _flag, 0)  # reports are also written where there is no such flag


def atomic_write(path: Path, data: bytes, *, mode: int = 0o644, through: Path | None = None) -> None:
    """Write a file so that a reader sees the old bytes or the new ones, and never a part.

    Args:
        path: The file.
        data: All of its bytes.
        mode: Its mode, before the umask.
        through: Folder of the same file system for what a killed writer leaves behind; null: the file's own.

    Raises:
        OSError: the folder does not exist or cannot be written.
    """
    temporary = (through or path.parent) / f".{path.name}.{secrets.token_hex(6)}.tmp"
    with naming(path):
        descriptor = os.open(temporary, _NEW_FILE, mode)
        try:
            _write_synced(descriptor, data)
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
            raise
        sync_folder(path.parent)


def write_new(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file that must not exist yet: whole or not at all, and never over anything, a link included.

    Raises:
        FileExistsError: something has that name.
        OSError: the folder does not exist or cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    with naming(path):
        descriptor = os.open(temporary, _NEW_FILE, mode)
        try:
            _write_synced(descriptor, data)
            os.link(temporary, path)
        finally:
            temporary.unlink()
        sync_folder(path.parent)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have an error of the system name the file that somebody wants, not a temporary one, nor none."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def takes_no_file(folder: Path, size: int = _PROBE_BYTES) -> OSError | None:
    """Return what the system says when a folder takes no file of so many bytes; None where it takes one.

    Rights alone do not tell: a file system may be read-only, full, or none that takes files.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(size))
    except OSError as error:
        return error
    return None


@contextlib.contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Give a folder beside the wanted one, and put it in place once it is full: whole, or not at all.

    Args:
        target: The folder; missing, or empty. The folders above it are made.

    Raises:
        OSError: something cannot be written; it names what was wanted.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own: two writers at once may not fill one folder.
    partial = target.with_name(f".{target.name}.{secrets.token_hex(6)}.partial")
    try:
        partial.mkdir()
        yield partial
        if target.exists():
            target.rmdir()
        partial.rename(target)
    except OSError as error:
        if error.filename is not None:
            error.filename = str(error.filename).replace(str(partial), str(target))
        raise
    except RoundkitError as error:
        # Git and compilers have words of their own for a full disk, or none.
        if (why := takes_no_file(partial)) is not None:
            raise OSError(why.errno, why.strerror, str(target)) from error
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    sync_folder(target.parent)


def _write_synced(descriptor: int, data: bytes) -> None:
    """Write all bytes to an open file, make them durable, and close it."""
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the operating system can be asked for it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: Any, *, mode: int = 0o644) -> str:
    """Write a value as canonical JSON, atomically, and return the digest of the bytes written."""
    data = canonical_bytes(value)
    atomic_write(path, data, mode=mode)
    return digest_bytes(data)


NOT_COUNTED = frozenset({".git", ".roundkit"})
"""Names at the top of a checkout that are no part of its tree."""
Row = tuple[str, str, str]
"""Path, kind with executable bit as git writes it, and digest of one file of a tree."""


def tree_digest(root: Path, *, skip: frozenset[str] = NOT_COUNTED) -> str:
    """Return one digest over every path, kind, executable bit and content below a folder.

    Args:
        root: The folder.
        skip: Names at the top of the folder that do not count.

    Raises:
        OSError: something below the folder cannot be read.
    """
    return rows_digest(tree_rows(root, skip=skip))


def rows_digest(rows: Iterable[Row]) -> str:
    """Return the digest of a tree that has these rows, in whatever order they come."""
    return digest_json(sorted(map(list, rows)))


def tree_rows(root: Path, *, skip: frozenset[str] = NOT_COUNTED) -> list[Row]:
    """Return what :func:`tree_digest` counts: one row for everything that is no folder.

    Raises:
        OSError: something below the folder cannot be read.
    """
    rows: list[Row] = []
    pending = [root]
    while pending:
        here = pending.pop()
        with os.scandir(here) as entries:
            for entry in entries:
                if here == root and entry.name in skip:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry))
                else:
                    rows.append(file_row(root, Path(entry)))
    return rows


def file_row(root: Path, path: Path) -> Row:
    """Return the row of one file, link or other entry that is no folder."""
    relative = path_text(path.relative_to(root).as_posix())
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return relative, "120000", digest_bytes(os.fsencode(path.readlink()))
    if stat.S_ISREG(mode):
        return relative, "100755" if mode & 0o100 else "100644", digest_file(path)
    return relative, f"{stat.S_IFMT(mode):o}", ""


def path_text(name: str) -> str:
    """Return a file name as text that JSON can hold; no two names give the same text."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return f"\0{os.fsencode(name).hex()}"  # no file name holds a NUL
    return name
