"""Copying and removing folders whose content a candidate may have made: nothing in them is followed."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from roundkit.core.files import naming

_FICLONE = 0x40049409
_NOT_CLONABLE = frozenset(
    {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM}
)
_FOLDER_MODE = 0o755
_PLAIN_MODE = 0o644
_EXECUTABLE_MODE = 0o755


def copy_tree(source: Path, target: Path, *, leave_out: Callable[[str], bool] | None = None) -> None:
    """Make a fresh copy of a folder: bytes, executable bits and symlinks; owners and other modes ignored.

    Everything in the copy is readable to every user, since a confined command runs as another one.
    Sockets, pipes and devices are left out: no checkout has any.

    Args:
        source: The folder.
        target: A folder that does not exist yet; its parent does.
        leave_out: Says of a relative path (of a file, link or folder) that it is not to be copied.

    Raises:
        OSError: something cannot be read or written.
    """
    make_folder(target)
    pending = [""]
    while pending:
        prefix = pending.pop()
        with os.scandir(source / prefix) as entries:
            for entry in entries:
                relative = f"{prefix}{entry.name}"
                if leave_out is not None and leave_out(relative):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    make_folder(target / relative)
                    pending.append(f"{relative}/")
                else:
                    copy_entry(source / relative, target / relative)


def copy_entry(source: Path, target: Path) -> None:
    """Copy one regular file or symlink, as a symlink; anything else is left out."""
    mode = source.lstat().st_mode
    if stat.S_ISLNK(mode):
        target.symlink_to(source.readlink())
    elif stat.S_ISREG(mode):
        _copy_file(source, target, executable=bool(mode & stat.S_IXUSR))


def write_file(target: Path, data: bytes, *, executable: bool) -> None:
    """Write a new file with the mode that a checkout gives it, whatever the umask."""
    descriptor = _create(target)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        os.fchmod(stream.fileno(), _EXECUTABLE_MODE if executable else _PLAIN_MODE)


def make_parents(root: Path, relative: str) -> None:
    """Make the folders between a root and a relative path below it, passable to every user.

    Whatever else stands in the way, a symlink too, is removed: it would lead somewhere else.
    """
    here = root
    for part in relative.split("/")[:-1]:
        here = here / part
        if here.is_symlink() or (here.exists() and not here.is_dir()):
            here.unlink()
        if not here.exists():
            make_folder(here)


def list_files(root: Path, *, folders: bool = False) -> Iterator[str]:
    """Yield the relative path of everything below a folder that is no folder itself.

    Args:
        root: The folder.
        folders: Yield folders too, each before what it holds.
    """
    pending = [""]
    while pending:
        prefix = pending.pop()
        with os.scandir(root / prefix) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder:
                    pending.append(f"{prefix}{entry.name}/")
                if folders or not is_folder:
                    yield f"{prefix}{entry.name}"


def remove_tree(root: Path) -> None:
    """Remove a folder however deep, wide or locked it is; does nothing where there is none.

    Folders are moved up instead of descended into, so neither the stack nor the longest path that the
    system takes is a limit. No process may still run in it.

    Raises:
        OSError: something cannot be removed.
    """
    try:
        mode = root.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(mode):
        root.unlink()
        return
    root.chmod(stat.S_IRWXU)
    serial = 0
    while found := _entries(root):
        for entry in found:
            if not entry.is_dir(follow_symlinks=False):
                Path(entry).unlink()
                continue
            serial = _empty_folder(Path(entry), root, serial)
            Path(entry).rmdir()
    root.rmdir()


def _empty_folder(folder: Path, root: Path, serial: int) -> int:
    """Remove a folder's files and move its folders up to the root; return the last serial used."""
    folder.chmod(stat.S_IRWXU)
    for inner in _entries(folder):
        if not inner.is_dir(follow_symlinks=False):
            Path(inner).unlink()
            continue
        Path(inner).chmod(stat.S_IRWXU)
        serial += 1
        while os.path.lexists(root / f".{serial}"):
            serial += 1
        Path(inner).rename(root / f".{serial}")
    return serial


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)


def make_folder(path: Path) -> None:
    """Make a folder that every user can pass and read, whatever the umask."""
    path.mkdir()
    path.chmod(_FOLDER_MODE)


def _create(target: Path) -> int:
    return os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _copy_file(source: Path, target: Path, *, executable: bool) -> None:
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(reading, "rb") as original, naming(target), os.fdopen(_create(target), "wb") as copy:
        if not _clone(original.fileno(), copy.fileno()):
            _copy_data(original.fileno(), copy.fileno())
        os.fchmod(copy.fileno(), _EXECUTABLE_MODE if executable else _PLAIN_MODE)


def _copy_data(source: int, target: int) -> None:
    """Copy what a file holds and leave its holes: a file of a terabyte of nothing must not fill a disk."""
    size = os.fstat(source).st_size
    end = 0
    while end < size:
        try:
            start = os.lseek(source, end, os.SEEK_DATA)
            end = os.lseek(source, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break
        os.lseek(target, start, os.SEEK_SET)
        while start < end and (sent := os.sendfile(target, source, start, end - start)):
            start += sent
    os.ftruncate(target, size)


def _clone(source: int, target: int) -> bool:
    """Share the source's blocks where the file system can; constant time for any size."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno in _NOT_CLONABLE:
            return False
        raise
    return True
