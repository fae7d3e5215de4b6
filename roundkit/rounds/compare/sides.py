"""The two sides of a comparison: folders as they lie there, or revisions of git repositories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.errors import refuse
from roundkit.core.files import tree_digest
from roundkit.core.git import Repository
from roundkit.measure.checkout import materialize
from roundkit.measure.trees import copy_tree
from roundkit.models.comparison import ComparedSide

_LEFT_OUT = frozenset({".git", "__pycache__"})


@dataclass(frozen=True)
class Located:
    """One side, found but not copied yet.

    Attributes:
        given: The side as a person named it.
        path: The folder, or the repository of a revision; absolute.
        commit: The commit; null for a folder.
    """

    given: str
    path: Path
    commit: str | None

    def fill(self, target: Path) -> ComparedSide:
        """Copy the side's files to a folder that does not exist yet, and say what they are.

        Of a folder, git's own files and Python's bytecode are left out.

        Raises:
            Refused: ``unsafe-path``.
            OSError: something cannot be read or written.
        """
        if self.commit is not None:
            materialize(self.path, self.commit, target)
            tree = Repository(self.path).tree_id(self.commit)
            return ComparedSide(
                given=self.given,
                kind="revision",
                commit=self.commit,
                tree=tree,
                files_sha256=tree_digest(target),
            )
        copy_tree(self.path, target, leave_out=lambda name: name.rsplit("/", 1)[-1] in _LEFT_OUT)
        digest = tree_digest(target)
        return ComparedSide(given=self.given, kind="folder", commit=digest, tree=digest, files_sha256=digest)


def locate(given: str, place: str) -> Located:
    """Find a side: a folder, or ``REPO@REV``; an empty ``REPO`` is the current folder.

    Args:
        given: What a person wrote.
        place: What to call it in an error.

    Raises:
        Refused: ``side-missing``, ``not-a-repository`` or ``unknown-revision``.
    """
    if Path(given).is_dir():
        return Located(given, Path(given).resolve(), None)
    for folder, revision in _splits(given):
        if folder.is_dir():
            return _revision(given, folder.resolve(), revision, place)
    raise refuse(
        "side-missing",
        f"there is no folder {given!r}",
        place=place,
        remedy="name a folder, or a revision of a git repository as REPO@REV",
    )


def _splits(given: str) -> Iterator[tuple[Path, str]]:
    """Yield every way to read the text as ``REPO@REV``, the shortest repository first."""
    for position, letter in enumerate(given):
        if letter == "@" and given[position + 1 :]:
            yield Path(given[:position] or "."), given[position + 1 :]


def _revision(given: str, folder: Path, revision: str, place: str) -> Located:
    repository = Repository(folder)
    if repository.git("rev-parse", "--git-dir", check=False).exit_code != 0:
        raise refuse(
            "not-a-repository",
            f"{folder} is no git repository",
            place=place,
            remedy="name the folder itself, or a git repository before the @",
        )
    commit = repository.resolve(revision)
    if commit is None:
        raise refuse(
            "unknown-revision",
            f"{folder} has no revision {revision!r}",
            place=place,
            remedy=f"`git -C {folder} log --oneline` lists commits",
        )
    return Located(given, folder, commit)
