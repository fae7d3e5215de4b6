"""Laying a commit's files on the disk, byte for byte, straight from git's objects."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from roundkit.core.errors import refuse
from roundkit.core.git import Repository
from roundkit.core.globs import GlobSet
from roundkit.measure.layers import put_whiteout
from roundkit.measure.trees import make_parents, write_file

# Objects are read in batches, so that one git process serves many files and memory stays bounded.
_BATCH_BYTES = 32 << 20
_BATCH_FILES = 2000
_GONE = "000000"


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
    _write(git, target, wanted)


def materialize_layer(
    repository: Path, base: str, commit: str, layer: Path, *, omit: GlobSet | None = None
) -> None:
    """Write what sets a commit apart from another one to a folder: the layer over a checkout of the other.

    What both have in common costs no file operation. Deleted files, and folders that no file is left in,
    become whiteouts.

    Args:
        repository: The repository, bare or not.
        base: Id of the commit that the lower layer is a checkout of, with the same files left out.
        commit: Id of the commit.
        layer: An empty folder.
        omit: Files to leave out.

    Raises:
        Refused: ``unsafe-path``, as for :func:`materialize`.
        CommandFailed: git cannot read a commit.
        OSError: a file cannot be written, or the file system has no whiteouts.
    """
    git = Repository(repository)
    raw = git.git("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", base, commit).stdout
    changes = [change for change in _changes(raw) if not (omit and omit.matches(change.path))]
    _write(git, layer, _with_sizes(git, [change for change in changes if change.mode != _GONE]))
    gone = [change.path for change in changes if change.mode == _GONE]
    for path in sorted(_topmost_gone(git, commit, gone)):
        _check_path(path)
        put_whiteout(layer, path)


def _changes(raw: bytes) -> Iterator[_File]:
    """Yield the new side of each changed file; its mode is all zeros where there is none."""
    fields = iter(raw.split(b"\0"))
    for head in fields:
        if head:
            _, mode, _, object_id, _ = head.decode().split(" ")
            yield _File(mode, object_id, 0, os.fsdecode(next(fields)))


def _with_sizes(git: Repository, files: list[_File]) -> list[_File]:
    ids = b"".join(file.object_id.encode() + b"\n" for file in files)
    told = git.git("cat-file", "--batch-check=%(objectsize)", stdin=ids).stdout.split(b"\n")
    return [
        replace(file, size=int(size)) if size.isdigit() else file
        for file, size in zip(files, told, strict=False)
    ]


def _topmost_gone(git: Repository, commit: str, gone: list[str]) -> set[str]:
    """Return the shortest paths that a commit no longer has, for files that it does not have.

    A file of the commit in the place of a folder hides what the folder held, so that nothing is left to
    delete there.
    """
    if not gone:
        return set()
    listing = git.git("ls-tree", "-r", "-t", "-z", "--full-tree", commit).stdout
    kinds = {}
    for row in listing.split(b"\0"):
        head, _, name = row.partition(b"\t")
        kinds[os.fsdecode(name)] = head.split(b" ")[1:2]
    topmost = set()
    for path in gone:
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            here = "/".join(parts[:depth])
            if here not in kinds:
                topmost.add(here)
            if kinds.get(here) != [b"tree"]:
                break
    return topmost


def _write(git: Repository, target: Path, wanted: list[_File]) -> None:
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
