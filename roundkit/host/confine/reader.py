"""Reading what a confined command left behind, as hostile."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path, PurePosixPath

from roundkit.core.beneath import BENEATH, NO_MAGICLINKS, NO_SYMLINKS, NO_XDEV, openat2
from roundkit.core.errors import RoundkitError

_CHUNK_BYTES = 1 << 20


class HostileOutput(RoundkitError):
    """A left-over file is not what a result may be.

    Attributes:
        reason: Stable code: ``missing``, ``unsafe-name``, ``link``, ``outside``, ``not-a-file``,
            ``hard-link``, ``too-large``, ``changing`` or ``unreadable``.
        detail: What was found.
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"[{reason}] {detail}")


_REASON_BY_ERRNO = {
    errno.ENOENT: "missing",
    errno.ENOTDIR: "missing",
    errno.ELOOP: "link",
    errno.EXDEV: "outside",
    errno.ENXIO: "not-a-file",
    errno.ENODEV: "not-a-file",
    errno.ENAMETOOLONG: "unsafe-name",
}


def read_output(root: Path, rel: str, max_bytes: int) -> bytes:
    """Read one regular file below ``root`` that a confined command may have written.

    No symbolic link is followed anywhere, no other file system entered; pipes and devices are neither
    waited for nor read. Owner and mode say nothing about the file and are ignored.

    Args:
        root: Folder that the coordinator made; its own path may contain links.
        rel: Path of the file below it, with ``/`` between the parts.
        max_bytes: Size that the file may have.

    Returns:
        The content, at most ``max_bytes`` bytes.

    Raises:
        HostileOutput: It is missing, or not such a file.
    """
    parts = PurePosixPath(rel).parts
    if not parts or "\0" in rel or rel.startswith("/") or ".." in parts:
        raise HostileOutput("unsafe-name", f"{rel!r} does not name a file below the folder")
    root_fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fd = _open_regular(root_fd, rel)
    finally:
        os.close(root_fd)
    try:
        return _read_bounded(fd, rel, max_bytes)
    finally:
        os.close(fd)


def _open_regular(root_fd: int, rel: str) -> int:
    resolve = BENEATH | NO_SYMLINKS | NO_MAGICLINKS | NO_XDEV
    # Looked at before it is opened for reading: opening a device can already have an effect.
    try:
        handle = openat2(root_fd, rel, os.O_PATH | os.O_NOFOLLOW, resolve)
    except OSError as error:
        reason = _REASON_BY_ERRNO.get(error.errno or 0, "unreadable")
        raise HostileOutput(reason, f"{rel!r}: {error.strerror}") from None
    try:
        found = os.fstat(handle)
        if stat.S_ISLNK(found.st_mode):
            raise HostileOutput("link", f"{rel!r} is a symbolic link")
        if not stat.S_ISREG(found.st_mode):
            raise HostileOutput("not-a-file", f"{rel!r} is not a regular file")
        if found.st_nlink != 1:
            raise HostileOutput("hard-link", f"{rel!r} has {found.st_nlink} names")
        try:
            return os.open(
                f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            )
        except OSError as error:
            raise HostileOutput("unreadable", f"{rel!r}: {error.strerror}") from None
    finally:
        os.close(handle)


def _read_bounded(fd: int, rel: str, max_bytes: int) -> bytes:
    size = os.fstat(fd).st_size
    if size > max_bytes:
        raise HostileOutput("too-large", f"{rel!r} is {size} bytes, more than {max_bytes}")
    content = bytearray()
    while chunk := os.read(fd, min(_CHUNK_BYTES, max_bytes + 1 - len(content))):
        content += chunk
        if len(content) > max_bytes:
            raise HostileOutput("changing", f"{rel!r} grew beyond {max_bytes} bytes while it was read")
    return bytes(content)
