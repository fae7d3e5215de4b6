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
    joined = _Joined(len(commits))
    owner: dict[str, int] = {}
    for index, commit in enumerate(commits):
        for path in commit.paths:
            joined.join(owner.setdefault(fold_path(path), index), index)
    for path, index in owner.items():
        for folder in PurePosixPath(path).parents:
            if str(folder) in owner:
                joined.join(owner[str(folder)], index)
    members: dict[int, list[CommitChange]] = {}
    for index, commit in enumerate(commits):
        if commit.paths:
            members.setdefault(joined.first_of(index), []).append(commit)
    return [CommitGroup(tuple(members[index])) for index in sorted(members)]


class _Joined:
    """Numbers from 0 that fall into groups; a group is named by its first number."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def first_of(self, index: int) -> int:
        while self._parent[index] != index:
            self._parent[index] = self._parent[self._parent[index]]
            index = self._parent[index]
        return index

    def join(self, one: int, other: int) -> None:
        low, high = sorted((self.first_of(one), self.first_of(other)))
        self._parent[high] = low
