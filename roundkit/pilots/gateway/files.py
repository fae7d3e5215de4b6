"""A candidate's files, as the gateway reads and changes them: never outside its folder, never over a link."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.beneath import BENEATH, NO_MAGICLINKS, NO_SYMLINKS, NO_XDEV, openat2
from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import RoundkitError
from roundkit.core.relpath import path_problem
from roundkit.host.confine import HostileOutput, read_output
from roundkit.measure.trees import list_files

_RESOLVE = BENEATH | NO_SYMLINKS | NO_MAGICLINKS | NO_XDEV
_FOLDER_MODE, _PLAIN_MODE, _EXECUTABLE_MODE = 0o755, 0o644, 0o755


class NotGiven(RoundkitError):
    """A path that the gateway does not go to; the message says why."""


@dataclass(frozen=True)
class CandidateFiles:
    """The folder of one candidate, in which nothing runs while it is looked at.

    Attributes:
        root: The folder.
        most_bytes: Largest file that is read or written.
    """

    root: Path
    most_bytes: int

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes; null where nothing is there.

        Raises:
            NotGiven: the path is not in its normal form, or leads to no regular file of that size.
        """
        problem = path_problem(path)
        if problem is not None:
            raise NotGiven(f"the path {problem}")
        try:
            return read_output(self.root, path, self.most_bytes)
        except HostileOutput as hostile:
            if hostile.reason == "missing":
                return None
            raise NotGiven(f"the path leads to no file that can be read: {hostile.reason}") from None

    def found(self, path: str) -> str | None:
        """Return the digest of what lies at a path; null where nothing does.

        Raises:
            NotGiven: as :meth:`read`.
        """
        content = self.read(path)
        return None if content is None else digest_bytes(content)

    def write(self, path: str, content: bytes) -> None:
        """Write a file whole, its folders too; one that was executable stays so.

        Raises:
            NotGiven: it is too large, or something on the way is no folder.
        """
        if len(content) > self.most_bytes:
            raise NotGiven(f"the file would have more than {self.most_bytes} bytes")
        *_, name = path.split("/")
        temporary = f".{secrets.token_hex(8)}.tmp"
        with self._parent(path, make=True) as parent:
            mode = _EXECUTABLE_MODE if _is_executable(name, parent) else _PLAIN_MODE
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(temporary, flags, mode, dir_fd=parent), "wb") as stream:
                stream.write(content)
                os.fchmod(stream.fileno(), mode)
            try:
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            except OSError as error:
                os.unlink(temporary, dir_fd=parent)
                raise NotGiven(f"the file cannot be put there: {error.strerror}") from None

    def delete(self, path: str) -> None:
        """Delete a file.

        Raises:
            NotGiven: it cannot be.
        """
        with self._parent(path, make=False) as parent:
            os.unlink(path.rpartition("/")[2], dir_fd=parent)

    def list(self) -> str:
        """Return the paths of all files, one a line, in order, as many as may be shown.

        Raises:
            NotGiven: a program left folders that cannot be gone through.
        """
        shown: list[str] = []
        size = 0
        try:
            names = [name.encode("utf-8", "backslashreplace").decode() for name in list_files(self.root)]
        except OSError as error:
            raise NotGiven(f"the files cannot be listed: {error.strerror}") from None
        for position, name in enumerate(sorted(names)):
            size += len(name.encode()) + 1
            if size > self.most_bytes:
                return "".join(shown) + f"[… {len(names) - position} paths left out …]\n"
            shown.append(f"{name}\n")
        return "".join(shown)

    @contextmanager
    def _parent(self, path: str, *, make: bool) -> Iterator[int]:
        """Open the folder that a path's file lies in."""
        here = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in path.split("/")[:-1]:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, _FOLDER_MODE, dir_fd=here)
                below = openat2(here, part, os.O_RDONLY | os.O_DIRECTORY, _RESOLVE)
                os.close(here)
                here = below
            yield here
        except OSError as error:
            raise NotGiven(f"the path cannot be gone: {error.strerror}") from None
        finally:
            os.close(here)


def _is_executable(name: str, parent: int) -> bool:
    try:
        return bool(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode & stat.S_IXUSR)
    except OSError:
        return False
