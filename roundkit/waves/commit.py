"""The committer: the one that writes the tree, within its own paths, through an index of its own.

A person's staged changes, paths of other lanes and everything outside the plan's paths stay as they are.
Bytes are written to the tree first and committed then; the commit, with its trailers, is the one event that
banks.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from roundkit.core.canonical import digest_file
from roundkit.core.clock import format_utc, now_utc
from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write
from roundkit.core.git import Repository, identity_environment
from roundkit.core.globs import GlobSet
from roundkit.core.process import CommandFailed
from roundkit.core.relpath import path_problem
from roundkit.measure.trees import remove_tree
from roundkit.models.wave_plan import CommitRules
from roundkit.rounds.candidate import COMMITTER, COMMITTER_EMAIL
from roundkit.rules.wave_collapse import has_collapsed, line_count
from roundkit.waves.submodules import not_checked_out, submodule_among
from roundkit.waves.tree_index import TreeIndex

_SCRATCH = "roundkit-waves"
_IN_PROGRESS = (
    "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply",
)  # fmt: skip
_PLAIN = "100644"
_EXECUTABLE = "100755"

Say = Callable[[str], None]


@dataclass(frozen=True)
class FoundWork:
    """What lay changed in the tree.

    Attributes:
        commit: The commit that holds it now; null where nothing of the committer's own had changed.
        restored: Watched files that had collapsed and are as at HEAD again.
    """

    commit: str | None
    restored: tuple[str, ...]


@dataclass(frozen=True)
class Committer:
    """Commits to one tree; whoever holds one holds the tree's gater lock.

    Attributes:
        tree: The working tree.
        rules: Its own paths, those of others, and what must not collapse.
        say: Tells what happened, loudly where it has to.
    """

    tree: Path
    rules: CommitRules
    say: Say

    @cached_property
    def _own(self) -> GlobSet:
        return GlobSet(self.rules.paths)

    @cached_property
    def _others(self) -> GlobSet:
        return GlobSet(self.rules.others)

    @cached_property
    def _watched(self) -> GlobSet:
        return GlobSet(self.rules.watched)

    @property
    def repository(self) -> Repository:
        """The tree's repository."""
        return Repository(self.tree)

    @cached_property
    def scratch(self) -> Path:
        """Folder beside the tree's index; no tool takes what lies there for part of the tree."""
        return git_folder(self.tree) / _SCRATCH

    def owns(self, path: str) -> bool:
        """Say whether a path is this committer's."""
        return self._own.matches(path) and not self._others.matches(path)

    @cached_property
    def index(self) -> TreeIndex:
        """The tree's own index, which nobody but a person stages in."""
        return TreeIndex(self.repository, git_folder(self.tree), self.scratch)

    def begin(self) -> None:
        """Put right and clear away whatever a killed committer left."""
        self.index.recover()
        remove_tree(self.scratch)
        self.scratch.mkdir()

    def head(self) -> str:
        """Return the commit that the tree stands on.

        Raises:
            Refused: ``tree-busy``: there is none, or a merge or the like is going on.
        """
        folder = git_folder(self.tree)
        busy = [name for name in _IN_PROGRESS if (folder / name).exists()]
        head = self.repository.resolve("HEAD")
        if head is None or busy:
            what = f"{busy[0]} is there" if busy else "it has no commit"
            raise refuse(
                "tree-busy",
                f"{self.tree} is in the middle of something: {what}",
                remedy="finish or abort it; the next start gates the wave",
            )
        return head

    def commit_found(self, tag: str, pending: Mapping[str, str]) -> FoundWork:
        """Commit what lies changed within the own paths as it was found, and restore what collapsed.

        Args:
            tag: The wave that comes next.
            pending: Digest by path of banked drafts that a killed committer may have written already; they
                are left for their own commit.

        Raises:
            Refused: ``tree-busy``; ``tree-not-committed``: it could not be, so nothing may be gated.
        """
        head = self.head()
        try:
            dirty = [path for path in self._dirty(head) if self.owns(path)]
            away = not_checked_out(self.repository, head, dirty)
            found = [path for path in dirty if path not in away and not self._is_pending(path, pending)]
            restored = tuple(path for path in found if self._restore_if_collapsed(head, path))
            left = sorted(set(found) - set(restored))
            commit = self._commit_paths(head, left, tag) if left else None
        except (CommandFailed, OSError) as error:
            raise refuse(
                "tree-not-committed",
                f"what lies changed in {self.tree} could not be committed: {error}",
                remedy="commit or discard it yourself; the next start gates the wave",
            ) from error
        if commit is not None:
            self.say(f"{len(left)} changed files found in the tree, committed as they were: {commit}")
        return FoundWork(commit, restored)

    def misfit(self, path: str) -> str | None:
        """Say why a draft cannot become this path of the tree, or return null where it can."""
        if (problem := path_problem(path)) is not None:
            return f"its path {problem}"
        if not self.owns(path):
            return "its path is not among the plan's own"
        parents = [path[:end] for end, letter in enumerate(path) if letter == "/"]
        if (link := submodule_among(self.repository, [*parents, path])) is not None:
            return f"{link} is a submodule"
        here = self.tree
        for part in path.split("/")[:-1]:
            here /= part
            if os.path.lexists(here) and not stat.S_ISDIR(here.lstat().st_mode):
                return f"{here.relative_to(self.tree)} is no folder"
            if os.path.lexists(here / ".git"):
                return f"{here.relative_to(self.tree)} is a repository of its own"
        target = self.tree / path
        if os.path.lexists(target) and not stat.S_ISREG(target.lstat().st_mode):
            return "what stands there is no file"
        return None

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files to the tree, each whole or not at all, with the modes that they have.

        Raises:
            OSError: one cannot be written.
        """
        for path, data in files.items():
            target = self.tree / path
            target.parent.mkdir(parents=True, exist_ok=True)
            executable = target.exists() and bool(target.stat().st_mode & stat.S_IXUSR)
            self._put(target, data, 0o755 if executable else 0o644)

    def bank(self, files: Mapping[str, bytes], message: str, banked: Callable[[], str | None]) -> str:
        """Commit files on whatever HEAD is, and return the commit.

        Args:
            files: Content by path.
            message: The commit's message, with its trailers.
            banked: Returns the commit that banked the same before, null where there is none; asked whenever
                HEAD has moved, so that nothing is banked twice.

        Raises:
            Refused: ``tree-busy``.
            CommandFailed: git cannot commit it.
        """
        repository = self.repository
        blobs = {
            path: repository.git("hash-object", "-w", "--stdin", stdin=data).text
            for path, data in files.items()
        }
        while (known := banked()) is None:
            head = self.head()
            modes = self._modes(head, files)
            rows = [(modes.get(path, _PLAIN), blobs[path], path) for path in files]
            tree = repository.lay_tree(head, removed=(), written=rows, env=self._index())
            commit = self._commit_tree(tree, head, message)
            if self.index.advance(commit, head):
                return commit
        return known

    def _dirty(self, head: str) -> list[str]:
        """List paths whose content in the tree is not HEAD's, whatever is staged."""
        repository, env = self.repository, self._index()
        # With what the tree's own index knows of unchanged files, not all of them are read again.
        if self.index.file.exists():
            shutil.copy2(self.index.file, env["GIT_INDEX_FILE"])
        repository.git("read-tree", "--reset", head, env=env)
        status = repository.git(
            "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", env=env
        ).stdout
        paths = [os.fsdecode(row[3:]) for row in status.split(b"\0") if row]
        return [path for path in paths if not path.endswith("/")]

    def _is_pending(self, path: str, pending: Mapping[str, str]) -> bool:
        target = self.tree / path
        if path not in pending or target.is_symlink() or not target.is_file():
            return False
        return digest_file(target) == pending[path]

    def _restore_if_collapsed(self, head: str, path: str) -> bool:
        if not self._watched.matches(path):
            return False
        entry = self.index.entries(head, [path]).get(path)
        if entry is None:
            return False
        before = self.repository.read_blob(head, path)
        target = self.tree / path
        there = target.is_file() and not target.is_symlink()
        now = target.read_bytes() if there else None
        if not has_collapsed(before, now, self.rules.least_lines):
            return False
        if target.is_symlink():
            target.unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        self._put(target, before, 0o755 if entry[0] == _EXECUTABLE else 0o644)
        lines = f"{line_count(now or b'')} lines where HEAD has {line_count(before)}"
        self.say(f"*** {path} had collapsed: {lines}; restored from HEAD, and left out of the commit")
        return True

    def _commit_paths(self, head: str, paths: Sequence[str], tag: str) -> str | None:
        repository, env = self.repository, self._index()
        listed = os.fsencode("".join(f"{path}\0" for path in paths))
        # The index is HEAD's, left there by whoever found these paths.
        how = ("--add", "--remove", "--replace", "-z", "--stdin")
        repository.git("update-index", *how, env=env, stdin=listed)
        tree = repository.git("write-tree", env=env).text
        if tree == repository.tree_id(head):
            return None
        message = f"Keep what was found changed before the gate of wave {tag}\n\nRoundkit-Found: {tag}\n"
        commit = self._commit_tree(tree, head, message)
        if not self.index.advance(commit, head):
            raise refuse("tree-busy", f"HEAD of {self.tree} moved meanwhile", remedy="start the gater again")
        return commit

    def _commit_tree(self, tree: str, parent: str, message: str) -> str:
        identity = identity_environment(COMMITTER, COMMITTER_EMAIL, format_utc(now_utc()))
        return self.repository.git(
            "commit-tree", tree, "-p", parent, "-F", "-", env=identity, stdin=message.encode()
        ).text

    def _modes(self, head: str, paths: Iterable[str]) -> dict[str, str]:
        entries = self.index.entries(head, paths)
        return {path: mode for path, (mode, _) in entries.items() if mode in {_PLAIN, _EXECUTABLE}}

    def _index(self) -> dict[str, str]:
        return {"GIT_INDEX_FILE": str(self.scratch / "index")}

    def _put(self, target: Path, data: bytes, mode: int) -> None:
        beside = self.scratch if self.scratch.stat().st_dev == target.parent.stat().st_dev else None
        atomic_write(target, data, mode=mode, through=beside)


def git_folder(tree: Path) -> Path:
    """Return the folder that git keeps of one working tree, where its index lies.

    Raises:
        Refused: ``no-tree``.
    """
    found = Repository(tree).git("rev-parse", "--absolute-git-dir", check=False)
    if found.exit_code:
        raise refuse(
            "no-tree",
            f"it is no working tree of git: {found.error_tail}",
            place=str(tree),
            remedy="put back the tree that the plan names",
        )
    return Path(found.text)
