"""The two doors to a lane clone: reading its outbox and writing its status mirror, following no link."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from roundkit.core.beneath import BENEATH, NO_MAGICLINKS, NO_SYMLINKS, NO_XDEV, openat2

_RESOLVE = BENEATH | NO_SYMLINKS | NO_MAGICLINKS | NO_XDEV
OUTBOX = ".roundkit/outbox"
STATUS = ".roundkit/status"


@contextmanager
def open_folder(clone: Path, relative: str) -> Iterator[int]:
    """Open a folder below a lane clone without following any link.

    Raises:
        OSError: it is missing, is no folder, or is reached through a link.
    """
    root = os.open(clone, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        descriptor = openat2(root, relative, os.O_RDONLY | os.O_DIRECTORY, _RESOLVE)
    finally:
        os.close(root)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class OutboxScan:
    """Reads the names in a lane's outbox a piece at a time, over and over, whatever their number.

    Attributes:
        at_end: Whether the last piece reached the end of the folder.
    """

    def __init__(self, clone: Path) -> None:
        self._clone = clone
        self._entries: Iterator[os.DirEntry[str]] | None = None
        self.at_end = False

    def read(self, most: int) -> list[str]:
        """Return the next names, at most so many; the next call goes on behind them, or starts anew.

        A folder that is not what it was has none.
        """
        names: list[str] = []
        self.at_end = True
        with contextlib.suppress(OSError):
            if self._entries is None:
                with open_folder(self._clone, OUTBOX) as descriptor:
                    self._entries = os.scandir(descriptor)
            names.extend(entry.name for entry in itertools.islice(self._entries, most))
            self.at_end = len(names) < most
        if self.at_end:
            self._entries = None
        return [name for name in names if not name.startswith(".")]

    def handed_over_ns(self, names: Iterable[str]) -> dict[str, int]:
        """Return when each of some entries was put there, by the host's clock; not those that are gone.

        It is when the entry was renamed into the folder: a lane can make that later, never earlier.
        """
        found: dict[str, int] = {}
        with contextlib.suppress(OSError), open_folder(self._clone, OUTBOX) as descriptor:
            for name in names:
                with contextlib.suppress(OSError):
                    found[name] = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_ctime_ns
        return found


def outbox_entries(clone: Path, wanted: Callable[[str], object]) -> list[str]:
    """Return the names in a lane's outbox that are wanted; none when the folder is not what it was."""
    with (
        contextlib.suppress(OSError),
        open_folder(clone, OUTBOX) as descriptor,
        os.scandir(descriptor) as entries,
    ):
        return sorted(entry.name for entry in entries if wanted(entry.name))
    return []


def printable_name(name: str) -> str:
    """Return a file name as it can be recorded, whatever bytes it is made of."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def mirror_status(clone: Path, name: str, data: bytes) -> bool:
    """Write one file of the status mirror; False when the lane broke its folder, to its own harm only."""
    try:
        with open_folder(clone, STATUS) as folder:
            temporary = f".{secrets.token_hex(6)}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, 0o644, dir_fd=folder)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        return False
    return True
