"""Moving a tree's HEAD together with the tree's own index, so that no later commit takes the move back.

An index that was not told of new files says that they are to be deleted. So HEAD moves while the index is
locked as git itself locks it, and every entry that was as in the commit before becomes as in the new one;
whatever else somebody has staged stays.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.clock import Deadline, format_utc, now_utc
from roundkit.core.errors import refuse
from roundkit.core.git import Repository, identity_environment
from roundkit.core.process import CommandFailed
from roundkit.rounds.candidate import COMMITTER, COMMITTER_EMAIL

_MINE = "index-next"
_COMMIT = "index-commit"
_WAIT_S = 30.0
_POLL_S = 0.02

Entry = tuple[str, str]
"""Mode and object id of a file."""


@dataclass(frozen=True)
class TreeIndex:
    """The index of a working tree, and its HEAD.

    Attributes:
        repository: The working tree.
        folder: Its git folder.
        scratch: Folder in there for what is prepared; whoever holds the tree's gater lock owns it.
    """

    repository: Repository
    folder: Path
    scratch: Path

    @property
    def file(self) -> Path:
        """The index that everybody uses."""
        return self.folder / "index"

    @property
    def _lock(self) -> Path:
        return self.folder / "index.lock"

    def recover(self) -> None:
        """Finish, or undo, what a killed gater had begun; locks of others stay."""
        mine, noted = self.scratch / _MINE, self.scratch / _COMMIT
        if not (mine.exists() and self._lock.exists() and mine.samefile(self._lock)):
            return
        # The commit is noted once the new index is whole.
        if noted.exists() and self.repository.resolve("HEAD") == noted.read_text():
            self._lock.replace(self.file)
        else:
            self._lock.unlink()

    def advance(self, commit: str, head: str) -> bool:
        """Move HEAD from one commit to the next, and the index with it; False where HEAD has moved meanwhile.

        Raises:
            Refused: ``tree-busy``: somebody has held the index for too long.
            CommandFailed: git cannot do it.
        """
        with self._locked(commit) as ready:
            identity = identity_environment(COMMITTER, COMMITTER_EMAIL, format_utc(now_utc()))
            move = ("update-ref", "-m", "roundkit waves", "HEAD", commit, head)
            moved = self.repository.git(*move, env=identity, check=False)
            if moved.exit_code and self.repository.resolve("HEAD") == head:
                raise CommandFailed(moved)
            if moved.exit_code == 0:
                self._publish(ready)
        return moved.exit_code == 0

    def entries(self, commit: str, paths: Iterable[str]) -> dict[str, Entry]:
        """Return mode and blob of those of the paths that a commit has."""
        wanted = set(paths)
        return {
            entry.path: (entry.mode, entry.object_id)
            for entry in self.repository.tree(commit)
            if entry.path in wanted
        }

    @contextmanager
    def _locked(self, commit: str) -> Iterator[bool]:
        """Lock the index and prepare it for a commit; gives whether there is one to prepare."""
        mine = self.scratch / _MINE
        mine.unlink(missing_ok=True)
        (self.scratch / _COMMIT).unlink(missing_ok=True)
        mine.touch()
        waiting = Deadline.after(_WAIT_S)
        while True:
            try:
                # Linked, so that a lock that a killed gater left is known as its own.
                self._lock.hardlink_to(mine)
                break
            except FileExistsError as error:
                if waiting.expired():
                    raise refuse(
                        "tree-busy",
                        f"somebody has held {self._lock} for {_WAIT_S:.0f} s",
                        remedy="end that git command; remove the file if none runs",
                    ) from error
                time.sleep(_POLL_S)
        try:
            yield self._prepare(mine, commit)
        finally:
            if self._lock.exists() and self._lock.samefile(mine):
                self._lock.unlink()

    def _prepare(self, mine: Path, commit: str) -> bool:
        if not self.file.exists():
            return False
        next_index = self.scratch / "index-told"
        shutil.copy2(self.file, next_index)
        env = {"GIT_INDEX_FILE": str(next_index)}
        rows = os.fsencode("".join(self._changes(commit, env)))
        self.repository.git("update-index", "-z", "--index-info", env=env, stdin=rows)
        mine.write_bytes(next_index.read_bytes())
        (self.scratch / _COMMIT).write_text(commit)
        return True

    def _publish(self, ready: bool) -> None:
        if ready:
            self._lock.replace(self.file)

    def _changes(self, commit: str, env: dict[str, str]) -> Iterator[str]:
        """Yield what an index is to be told of a commit: where it is as the commit's parent had it."""
        parent = f"{commit}^"
        listed = self.repository.git(
            "diff-tree", "-r", "-z", "--no-renames", "--name-only", parent, commit
        ).stdout
        paths = [os.fsdecode(path) for path in listed.split(b"\0") if path]
        before, after = self.entries(parent, paths), self.entries(commit, paths)
        staged = self._staged(paths, env)
        for path in paths:
            if staged.get(path) == before.get(path):
                mode, blob = after.get(path, ("0", "0" * len(commit)))
                yield f"{mode} {blob}\t{path}\0"

    def _staged(self, paths: Iterable[str], env: dict[str, str]) -> dict[str, Entry]:
        wanted = set(paths)
        staged = {}
        for row in self.repository.git("ls-files", "-s", "-z", env=env).stdout.split(b"\0"):
            head, _, path = row.partition(b"\t")
            if row and os.fsdecode(path) in wanted:
                mode, blob, _stage = head.decode().split()
                staged[os.fsdecode(path)] = (mode, blob)
        return staged
