"""Which commits belong together when a range of commits is replayed as lanes with disjoint files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from roundkit.core.relpath import fold_path


@dataclass(frozen=True)
class CommitChange:
    """One commit and every path that it changes, deletions and both ends of a rename included."""

    commit: str
    subject: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class CommitGroup:
    """Commits, oldest first, that share no path with any other group."""

    commits: tuple[CommitChange, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that any of the commits changes, sorted."""
        return tuple(sorted({path for commit in self.commits for path in commit.paths}))


def group_commits(commits: Sequence[CommitChange]) -> list[CommitGroup]:
    """Split commits into the most groups that have disjoint files; commits without a path are left out.

    Two commits share a file also when one's path lies in a folder that is the other's file, and when their
    paths differ by spelling only, since such paths cannot both be laid out.

    Args:
        commits: Oldest first.

    Returns:
        The groups, in the order of their oldest commits.
    """
    parent = list(range(len(commits)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    def join(first: int, second: int) -> None:
        low, high = sorted((root(first), root(second)))
        parent[high] = low

    owner: dict[str, int] = {}
    for index, commit in enumerate(commits):
        for path in commit.paths:
            join(owner.setdefault(fold_path(path), index), index)
    for path, index in owner.items():
        for folder in PurePosixPath(path).parents:
            if str(folder) in owner:
                join(owner[str(folder)], index)
    members: dict[int, list[CommitChange]] = {}
    for index, commit in enumerate(commits):
        if commit.paths:
            members.setdefault(root(index), []).append(commit)
    return [CommitGroup(tuple(members[index])) for index in sorted(members)]
