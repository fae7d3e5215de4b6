"""A run's own copies of drafts: opened as hostile, kept under their digest, laid out anew for every call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from roundkit.core.beneath import BENEATH, NO_MAGICLINKS, NO_SYMLINKS, NO_XDEV, openat2
from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write
from roundkit.host.confine import HostileOutput, read_output
from roundkit.measure.trees import make_folder, make_parents, write_file

Keep = Callable[[bytes], str]
"""Takes bytes and returns their digest."""

MOST_FILES = 10_000
"""Files of one shard that are looked at; what is beyond them is refused as a whole."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK
_RESOLVE = BENEATH | NO_SYMLINKS | NO_MAGICLINKS | NO_XDEV


@dataclass(frozen=True)
class Found:
    """A file in a shard's folder of drafts.

    Attributes:
        path: Its path below that folder.
        data: Its bytes; null where it cannot be taken.
        problem: Why it cannot.
    """

    path: str
    data: bytes | None
    problem: str = ""


def found_drafts(folder: Path, suffix: str, most_bytes: int) -> Iterator[Found]:
    """Yield every draft in a folder that an agent writes, perhaps still: no link is followed, all is bounded.

    Args:
        folder: The shard's folder of drafts; nothing is yielded where it is not there.
        suffix: End of a draft's name; other files are an agent's own business.
        most_bytes: Size that a draft may have.
    """
    try:
        names = list(_names(folder))
    except OSError as error:
        yield Found("", None, f"the folder cannot be listed: {error.strerror}")
        return
    for path in sorted(names[:MOST_FILES]):
        if not path.endswith(suffix):
            continue
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        if shown != path:
            yield Found(shown, None, "its name is no valid UTF-8")
            continue
        try:
            yield Found(path, read_output(folder, path, most_bytes))
        except HostileOutput as error:
            yield Found(path, None, error.detail)
        except OSError as error:
            yield Found(path, None, str(error.strerror))
    if len(names) > MOST_FILES:
        yield Found("", None, f"there are more than {MOST_FILES} files; the rest was not looked at")


def _names(folder: Path) -> Iterator[str]:
    """Yield the paths of files at most one folder deep, as many as are looked at and one more."""
    try:
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        left = MOST_FILES + 1
        folders = []
        for name, is_folder in _listed(top, left):
            if is_folder:
                folders.append(name)
                continue
            left -= 1
            yield name
        for inner in sorted(folders):
            try:
                descriptor = openat2(top, inner, _FOLDER, _RESOLVE)
            except OSError:
                continue
            try:
                for name, _ in _listed(descriptor, left):
                    left -= 1
                    yield f"{inner}/{name}"
            finally:
                os.close(descriptor)
    finally:
        os.close(top)


def _listed(descriptor: int, most: int) -> Iterator[tuple[str, bool]]:
    with os.scandir(descriptor) as entries:
        for number, entry in enumerate(entries):
            if number >= most:
                return
            yield entry.name, entry.is_dir(follow_symlinks=False)


@dataclass(frozen=True)
class DraftStore:
    """The copies of one run; a copy has its digest as its name, so none can stand for another.

    Attributes:
        folder: Where they lie.
    """

    folder: Path

    def put(self, data: bytes) -> str:
        """Keep some bytes and return their digest."""
        digest = digest_bytes(data)
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / digest).exists():
            atomic_write(self.folder / digest, data)
        return digest

    def get(self, digest: str) -> bytes:
        """Return the bytes of a digest.

        Raises:
            Refused: ``draft-changed``: the copy is not what it was.
            OSError: it cannot be read.
        """
        data = (self.folder / digest).read_bytes()
        if digest_bytes(data) != digest:
            raise refuse("draft-changed", f"the copy {digest} is not what it was", place=str(self.folder))
        return data


def new_folder(parent: Path, name: str) -> Path:
    """Make a folder that was never there before, however often this step was killed: ``0001-NAME``, ..."""
    parent.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        folder = parent / f"{number:04d}-{name}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        folder.chmod(0o711)
        return folder
    raise AssertionError("folders are endless")


def lay_out(folder: Path, files: Iterable[tuple[str, bytes]]) -> Path:
    """Make a folder that holds these files, by relative path, and return it.

    Raises:
        OSError: a path does not fit, such as one that is a file and a folder at once.
    """
    make_folder(folder)
    for path, data in files:
        make_parents(folder, path)
        write_file(folder / path, data, executable=False)
    return folder
