"""Reading and writing layers: what an overlay shows of two folders, without mounting it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from roundkit.core.files import NOT_COUNTED, Row, file_row, path_text, rows_digest, tree_rows
from roundkit.host.confine.overlay import OPAQUE, is_opaque, is_whiteout
from roundkit.measure.trees import copy_entry, make_folder, make_parents

# Attributes by which a layer would show something else than its own files; the boundary's mounts make none.
_UNKNOWN_MARKS = ("user.overlay.redirect", "user.overlay.metacopy", "user.overlay.whiteout")


def put_whiteout(layer: Path, relative: str) -> None:
    """Delete a path of the lower layers in a layer that has nothing there.

    Raises:
        OSError: the file system has no such files.
    """
    make_parents(layer, relative)
    os.mknod(layer / relative, stat.S_IFCHR, os.makedev(0, 0))


def copy_layer(source: Path, target: Path, *, leave_out: Callable[[str], bool]) -> None:
    """Copy a layer with its whiteouts and opaque folders; else as :func:`copy_tree` does.

    Args:
        source: The layer.
        target: A folder that does not exist yet.
        leave_out: Says of a relative path that the layer is to show nothing of its own there.

    Raises:
        OSError: something cannot be read or written, or a mark is not known.
    """
    make_folder(target)
    for relative, found in walk_layer(source):
        if any(map(leave_out, and_parents(relative))):
            continue
        if is_whiteout(found):
            put_whiteout(target, relative)
        elif stat.S_ISDIR(found.st_mode):
            make_folder(target / relative)
            if is_opaque(str(source / relative)):
                os.setxattr(target / relative, OPAQUE, b"y")
        else:
            copy_entry(source / relative, target / relative)


def merged_digest(base: Path, layer: Path) -> str:
    """Return the digest of the tree that an overlay shows: that of a plain checkout of the same files.

    The base is read once a process and then remembered: no command can write to it.

    Raises:
        OSError: something cannot be read, or a mark is not known.
    """
    return rows_digest(merge_rows(_base_rows(base), layer))


def merge_rows(base: Iterable[Row], layer: Path) -> Iterator[Row]:
    """Yield the rows of an overlay, from those of its base and the layer above."""
    replaced: set[str] = set()  # whatever the base has there, and below
    emptied: set[str] = set()  # whatever the base has below
    own: list[Row] = []
    for relative, found in walk_layer(layer):
        if relative.partition("/")[0] in NOT_COUNTED:
            continue
        if not stat.S_ISDIR(found.st_mode):
            replaced.add(path_text(relative))
            if not is_whiteout(found):
                own.append(file_row(layer, layer / relative))
        elif is_opaque(str(layer / relative)):
            replaced.add(path_text(relative))
        else:
            emptied.add(path_text(relative))
    # A folder merges with a folder only: a file of the base in its place is gone.
    yield from (row for row in base if row[0] not in emptied and not replaced & set(and_parents(row[0])))
    yield from own


def walk_layer(layer: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield each entry of a layer as (relative path, stat), a folder before what it holds.

    Raises:
        OSError: something cannot be read, or a mark is not known.
    """
    pending = [""]
    while pending:
        prefix = pending.pop()
        with os.scandir(layer / prefix) as entries:
            for entry in entries:
                relative = f"{prefix}{entry.name}"
                found = entry.stat(follow_symlinks=False)
                _refuse_unknown_marks(layer / relative, found)
                yield relative, found
                if stat.S_ISDIR(found.st_mode):
                    pending.append(f"{relative}/")


def is_covered(layer: Path, relative: str) -> bool:
    """Say whether a layer already hides what the layers below it have at a path."""
    if os.path.lexists(layer / relative):
        return True
    for above in list(and_parents(relative))[1:]:
        found = layer / above
        if os.path.lexists(found) and (not found.is_dir() or found.is_symlink() or is_opaque(str(found))):
            return True
    return False


def _refuse_unknown_marks(path: Path, found: os.stat_result) -> None:
    if not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
        return
    marks = os.listxattr(path, follow_symlinks=False)
    unknown = [mark for mark in marks if mark in _UNKNOWN_MARKS]
    if unknown or (OPAQUE in marks and not is_opaque(str(path))):
        raise OSError(f"{path} has a mark that no layer should have: {', '.join(unknown) or OPAQUE}")


def and_parents(path: str) -> Iterator[str]:
    """Yield a path and every folder above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


@lru_cache(maxsize=8)
def _base_rows(base: Path) -> tuple[Row, ...]:
    return tuple(tree_rows(base))
