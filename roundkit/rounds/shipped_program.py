"""A repository of a program that ships with roundkit, for the demo and the examples."""

from __future__ import annotations

from pathlib import Path

from roundkit.core.git import Repository, identity_environment
from roundkit.measure.trees import copy_tree

_COMMIT_DATE = "2026-01-01T00:00:00Z"


def make_program(source: Path, target: Path, *, what: str, message: str) -> str:
    """Copy a program into a new repository and return its one commit, the same on every machine.

    Args:
        source: The program's folder.
        target: The repository's folder, which is not there yet.
        what: What it is made for, e.g. ``demo``: the author's name and address have it.
        message: What the commit says.
    """
    copy_tree(source, target, leave_out=lambda name: name.endswith("__pycache__"))
    repository = Repository(target)
    repository.git("init", "--quiet", "--initial-branch=main")
    repository.git("add", "--all")
    identity = identity_environment(f"roundkit {what}", f"{what}@localhost", _COMMIT_DATE)
    repository.git("commit", "--quiet", "--message", message, env=identity)
    return repository.git("rev-parse", "HEAD").text
