"""Laying a commit's files on the disk, byte for byte, straight from git's objects."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.errors import refuse
from roundkit.core.git import Repository
from roundkit.core.globs import GlobSet
from roundkit.measure.trees import make_parents, write_file

# Objects are read in batches, so that one git process serves many files and memory stays bounded.
_BATCH_BYTES = 32 << 20
_BATCH_FILES = 2000


@dataclass(frozen=True)
class _File:
    mode: str
    object_id: str
    size: int
    path: str


def materialize(
    repository: Path, commit: str, target: Path, *, omit: GlobSet | None = None, only: GlobSet | None = None
) -> None:
    """Write the files of a commit to a folder, without ``.git``.

    The bytes are those of the commit: attributes, filters and line-end settings change nothing. Modes
    are 0644 and 0755 whatever the umask, symlinks stay symlinks, a submodule is an empty folder.

    Args:
        repository: The repository, bare or not.
        commit: Id of the commit.
        target: Folder to write to; made if it is missing. No file of the commit may exist there yet.
        omit: Files to leave out.
        only: Write these files only.

    Raises:
        Refused: ``unsafe-path``: the commit holds a path that leaves the folder or enters ``.git``.
        CommandFailed: git cannot read the commit.
        OSError: a file cannot be written.
    """
    if not target.is_dir():
        target.mkdir()
        target.chmod(0o755)
    git = Repository(repository)
    listing = git.git("ls-tree", "-r", "-l", "-z", "--full-tree", commit).stdout
    wanted = [
        file
        for file in _files(listing)
        if not (omit and omit.matches(file.path)) and (only is None or only.matches(file.path))
    ]
    for file in wanted:
        _check_path(file.path)
        make_parents(target, file.path)
        if file.mode == "160000":
            (target / file.path).mkdir(mode=0o755)
    for batch in _batches(file for file in wanted if file.mode != "160000"):
        request = b"".join(file.object_id.encode() + b"\n" for file in batch)
        answer = memoryview(git.git("cat-file", "--batch", stdin=request).stdout)
        for file in batch:
            data, answer = _next_object(answer, file)
            if file.mode == "120000":
                (target / file.path).symlink_to(os.fsdecode(bytes(data)))
            else:
                write_file(target / file.path, bytes(data), executable=file.mode == "100755")


def _files(listing: bytes) -> Iterator[_File]:
    for row in listing.split(b"\0"):
        if row:
            head, _, path = row.partition(b"\t")
            mode, _, object_id, size = head.decode().split()
            yield _File(mode, object_id, int(size) if size != "-" else 0, os.fsdecode(path))


def _check_path(path: str) -> None:
    if any(part in {"", ".", ".."} or part.lower() == ".git" for part in path.split("/")):
        raise refuse("unsafe-path", f"the commit holds the path {path!r}", remedy="remove it from the commit")


def _batches(files: Iterable[_File]) -> Iterator[list[_File]]:
    batch: list[_File] = []
    size = 0
    for file in files:
        if batch and (size + file.size > _BATCH_BYTES or len(batch) >= _BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch


def _next_object(answer: memoryview, file: _File) -> tuple[memoryview, memoryview]:
    header = bytes(answer[:128]).split(b"\n", 1)[0]
    start = len(header) + 1
    end = start + file.size
    if header.split()[1:] != [b"blob", str(file.size).encode()]:
        raise refuse("git-object", f"git answered {header!r} for {file.path!r}", remedy="run `git fsck`")
    return answer[start:end], answer[end + 1 :]
