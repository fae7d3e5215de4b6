"""Submodules of a tree, checked out or not: their places are never free, and never taken away."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from roundkit.core.git import Repository

_MODE = b"160000 "


def submodule_among(repository: Repository, paths: Sequence[str]) -> str | None:
    """Return the path that HEAD has as a submodule; null where none is."""
    return next(_submodules(repository, "HEAD", paths), None)


def not_checked_out(repository: Repository, head: str, changed: Sequence[str]) -> set[str]:
    """Return the submodules without a folder among changed paths: that looks like a deletion and is none."""
    gone = [path for path in changed if not os.path.lexists(repository.path / path)]
    return set(_submodules(repository, head, gone)) if gone else set()


def _submodules(repository: Repository, commit: str, paths: Sequence[str]) -> Iterator[str]:
    listed = repository.git("ls-tree", "-z", "--full-tree", commit, "--", *paths).stdout
    for row in filter(None, listed.split(b"\0")):
        about, _, path = row.partition(b"\t")
        if about.startswith(_MODE):
            yield os.fsdecode(path)
