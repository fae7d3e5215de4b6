"""Whether a candidate's files fit on a parent: no path may be a file and a folder at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import PurePosixPath


def misfit(parent: Iterable[str], removed: Collection[str], written: Collection[str]) -> str | None:
    """Return a path that cannot be laid on the parent, or None when all fit.

    Args:
        parent: Paths of the parent's files.
        removed: Paths that the candidate removes.
        written: Paths that the candidate writes.
    """
    files = (set(parent) - set(removed)) | set(written)
    for path in sorted(written):
        for folder in PurePosixPath(path).parents:
            if str(folder) in files:
                return str(folder)
    folders = tuple(f"{path}/" for path in written)
    inside = min((path for path in files if path.startswith(folders)), default=None) if folders else None
    return None if inside is None else next(path for path in sorted(written) if inside.startswith(f"{path}/"))
