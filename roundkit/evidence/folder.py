"""Reading a folder that nobody vouches for: no link is followed, every read is bounded and hashed."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from roundkit.evidence import layout
from roundkit.evidence.problem import problem

_CHUNK_BYTES = 1 << 20
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")


def _flags(*names: str) -> int:
    """Return flags for reading, as far as this operating system has them."""
    flags = os.O_RDONLY
    for name in ("O_CLOEXEC", "O_BINARY", *names):
        flags |= getattr(os, name, 0)
    return flags


_ROOT_FLAGS = _flags("O_DIRECTORY")
_FOLDER_FLAGS = _flags("O_DIRECTORY", "O_NOFOLLOW")
_FILE_FLAGS = _flags("O_NOFOLLOW", "O_NONBLOCK")


@dataclass(frozen=True)
class EvidenceFolder:
    """A folder of evidence, read by name only through descriptors that follow no link.

    Where the operating system opens no name beside a descriptor (Windows), each part of a path is looked at
    before it is opened.

    Attributes:
        root: The folder; the path that leads to it may hold links, nothing inside may.
    """

    root: Path

    def list_files(self, *, deepest: int = 1) -> dict[str, int]:
        """Return every regular file below the folder with its size in bytes.

        Args:
            deepest: How many folders there may be below each other.

        Raises:
            EvidenceProblem: something is neither a folder nor a regular file, or there is too much.
        """
        found: dict[str, int] = {}
        self._list(self.root, "", found, deepest)
        return found

    def _list(self, folder: Path, prefix: str, found: dict[str, int], deepest: int) -> None:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            raise problem(
                "no-evidence", f"cannot list the folder: {error.strerror}", where=prefix or str(folder)
            ) from error
        for entry in entries:
            name = f"{prefix}{entry.name}"
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                if prefix.count("/") >= deepest:
                    raise problem(
                        "extra-file", f"{_shown(name)} is a folder that no evidence has", where=name
                    )
                self._list(folder / entry.name, f"{name}/", found, deepest)
            elif stat.S_ISREG(status.st_mode):
                found[name] = status.st_size
            else:
                raise problem("not-a-file", f"{_shown(name)} is a link or a special file", where=name)
            if len(found) > layout.MAX_FILES:
                raise problem("too-large", f"more than {layout.MAX_FILES} files", where=str(self.root))

    def read(self, name: str, *, limit: int, one_name: bool = False) -> bytes:
        """Return a file's bytes.

        Args:
            name: Its path below the folder.
            limit: Bytes that it may have.
            one_name: Whether a file with a second name, a hard link, is refused.

        Raises:
            EvidenceProblem: it is missing, is not a regular file, or is larger than ``limit`` bytes.
        """
        with self._open(name) as descriptor:
            size, names = (found := os.fstat(descriptor)).st_size, found.st_nlink
            if one_name and names != 1:
                raise problem("hard-linked", f"{name} has {names} names", where=name)
            if size > limit:
                raise problem("too-large", f"{name} has {size} bytes, more than {limit}", where=name)
            pieces, left = [], limit + 1
            while left > 0 and (piece := os.read(descriptor, min(_CHUNK_BYTES, left))):
                pieces.append(piece)
                left -= len(piece)
        data = b"".join(pieces)
        if len(data) > limit:
            raise problem("too-large", f"{name} grew beyond {limit} bytes", where=name)
        return data

    def digest(self, name: str, *, size: int) -> str:
        """Return the SHA-256 of a file of the given size, read in pieces.

        Raises:
            EvidenceProblem: it is missing, is not a regular file, or has another size.
        """
        hashed, seen = hashlib.sha256(), 0
        with self._open(name) as descriptor:
            while seen <= size and (piece := os.read(descriptor, _CHUNK_BYTES)):
                hashed.update(piece)
                seen += len(piece)
        if seen != size:
            raise problem("wrong-size", f"{name} does not have the {size} bytes of the index", where=name)
        return hashed.hexdigest()

    @contextmanager
    def _open(self, name: str) -> Iterator[int]:
        *folders, last = name.split("/")
        opened: list[int] = []
        try:
            try:
                if _BY_DESCRIPTOR:
                    opened.append(os.open(self.root, _ROOT_FLAGS))
                    for part in folders:
                        opened.append(os.open(part, _FOLDER_FLAGS, dir_fd=opened[-1]))
                    opened.append(os.open(last, _FILE_FLAGS, dir_fd=opened[-1]))
                else:
                    self._refuse_links(name)
                    opened.append(os.open(self.root / name, _FILE_FLAGS))
            except FileNotFoundError as error:
                raise problem("missing-file", f"{name} is missing", where=name) from error
            except PermissionError as error:
                raise problem(
                    "not-permitted", f"this user may not read {name}", where=name,
                    remedy="give this user the right to read the whole folder",
                ) from error  # fmt: skip
            except OSError as error:
                raise problem("not-a-file", f"it cannot be read: {error.strerror}", where=name) from error
            if not stat.S_ISREG(os.fstat(opened[-1]).st_mode):
                raise problem("not-a-file", f"{name} is not a regular file", where=name)
            yield opened[-1]
        finally:
            for descriptor in reversed(opened):
                os.close(descriptor)

    def _refuse_links(self, name: str) -> None:
        path = self.root
        for part in name.split("/"):
            path /= part
            if path.is_symlink():
                raise problem("not-a-file", f"{name} is a link, or lies behind one", where=name)


def _shown(name: str) -> str:
    return ascii(name)[1:-1]
