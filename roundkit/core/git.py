"""Git plumbing. Every call ignores the user's and the repository's hooks, monitors and prompts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.process import Completed, run

SAFE_SETTINGS = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false",
    "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "advice.detachedHead=false",
    "-c", "core.quotePath=false", "-c", "protocol.file.allow=always", "-c", "core.autocrlf=false",
    "-c", "safe.directory=*",
)  # fmt: skip
"""Settings for any git command, in whatever repository: no hook, no monitor, no signature, no clean-up."""
_BRANCHES = "refs/heads/"
_INHERITED = ("PATH", "LANG", "LC_ALL", "TMPDIR")


@dataclass(frozen=True)
class TreeEntry:
    """One row of a git tree: mode (``100644``), object kind, object id and path."""

    mode: str
    kind: str
    object_id: str
    path: str


@dataclass(frozen=True)
class Repository:
    """A git repository at a folder (its working tree, or a bare one)."""

    path: Path

    def git(
        self,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        check: bool = True,
    ) -> Completed:
        """Run one git command in the repository with neutral configuration.

        Raises:
            CommandFailed: git failed and ``check`` holds.
        """
        return run(
            ["git", *SAFE_SETTINGS, "-C", self.path, *arguments],
            env={**neutral_environment(), **(env or {})},
            stdin=stdin,
            check=check,
        )

    def resolve(self, revision: str) -> str | None:
        """Return the commit id of a revision, or None when the repository does not have it."""
        found = self.git(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", check=False
        )
        return found.text if found.exit_code == 0 else None

    def tree_id(self, commit: str) -> str:
        """Return the id of a commit's tree."""
        return self.git("rev-parse", "--verify", f"{commit}^{{tree}}").text

    def tree(self, commit: str) -> list[TreeEntry]:
        """List every file of a commit, sorted by path as git sorts."""
        listing = self.git("ls-tree", "-r", "-z", "--full-tree", commit).stdout
        entries = []
        for row in listing.split(b"\0"):
            if row:
                head, _, path = row.partition(b"\t")
                mode, kind, object_id = head.decode().split()
                entries.append(TreeEntry(mode, kind, object_id, os.fsdecode(path)))
        return entries

    def paths(self, commit: str) -> list[str]:
        """List the path of every file of a commit."""
        return [entry.path for entry in self.tree(commit)]

    def changed_paths(self, before: str, after: str) -> frozenset[str]:
        """Return the paths whose contents differ between two commits."""
        listing = self.git("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after).stdout
        return frozenset(os.fsdecode(path) for path in listing.split(b"\0") if path)

    def dirty_paths(self) -> list[str]:
        """List paths of the working tree that are changed or untracked (ignored files excepted)."""
        status = self.git("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames").stdout
        return [os.fsdecode(row[3:]) for row in status.split(b"\0") if row]

    def lay_tree(
        self,
        parent: str,
        *,
        removed: Iterable[str],
        written: Iterable[tuple[str, str, str]],
        env: Mapping[str, str],
    ) -> str:
        """Return the tree that some files give when they are laid on a commit or tree, without a checkout.

        Args:
            parent: The commit or tree.
            removed: Paths to leave out.
            written: Mode, object id and path of every file to write.
            env: Names the index file to use (``GIT_INDEX_FILE``), which is overwritten.

        Raises:
            CommandFailed: git does not take the combination of paths, or broke.
        """
        self.git("read-tree", parent, env=env)
        nothing = "0" * len(self.git("rev-parse", "--verify", parent, env=env).text)
        gone = [f"0 {nothing}\t{path}\0" for path in removed]
        laid = [f"{mode} {object_id}\t{path}\0" for mode, object_id, path in written]
        # Deletions first, so that a folder may become a file and a file a folder.
        for rows in (gone, laid):
            self.git("update-index", "-z", "--index-info", env=env, stdin=os.fsencode("".join(rows)))
        return self.git("write-tree", env=env).text

    def read_blob(self, commit: str, path: str) -> bytes:
        """Return a file's bytes at a commit."""
        return self.git("cat-file", "blob", f"{commit}:{path}").stdout

    def current_branch(self) -> str | None:
        """Return the branch that is checked out, also one without a commit; None where none is."""
        # Not git's short name: beside a tag of the same name that is `heads/NAME`.
        head = self.git("symbolic-ref", "--quiet", "HEAD", check=False).text
        return head.removeprefix(_BRANCHES) if head.startswith(_BRANCHES) else None

    def branch_exists(self, name: str) -> bool:
        """Say whether a local branch of that name exists."""
        return self.git("show-ref", "--verify", "--quiet", f"refs/heads/{name}", check=False).exit_code == 0


def neutral_environment() -> dict[str, str]:
    """Return an environment for git that takes nothing from the user's configuration."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {
        **kept,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "HOME": os.devnull,
    }


def identity_environment(name: str, email: str, date: str) -> dict[str, str]:
    """Return the variables that fix author, committer and date of a commit, so that its id repeats."""
    return {
        "GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email, "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": email, "GIT_COMMITTER_DATE": date,
    }  # fmt: skip
