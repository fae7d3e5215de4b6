"""A lane's clone: its own objects, index and refs, at the incumbent, and no remote."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from roundkit.core.git import Repository, identity_environment
from roundkit.core.globs import GlobSet
from roundkit.models.round_plan import RoundPlan

_VISIBLE_REF = "refs/roundkit/visible-base"
_EXCLUDED = "/.roundkit/\n__pycache__/\n*.pyc\n"
_EPOCH = "1970-01-01T00:00:00Z"


def visible_commit(store: Path, plan: RoundPlan) -> str:
    """Return the commit that lanes start from: the incumbent, or one without hold-outs and history.

    Args:
        store: The round's own repository.
        plan: The frozen plan.
    """
    repository = Repository(store)
    hidden = GlobSet(plan.campaign.hidden_paths).select(repository.paths(plan.incumbent))
    if not hidden:
        return plan.incumbent
    with tempfile.TemporaryDirectory(dir=store.parent) as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        repository.git("read-tree", plan.incumbent, env=index)
        removals = "".join(f"0 {'0' * len(plan.incumbent)}\t{path}\0" for path in hidden)
        repository.git("update-index", "-z", "--index-info", env=index, stdin=removals.encode())
        tree = repository.git("write-tree", env=index).text
    # No parent: the hold-outs would stand in the history. Fixed identity and date: the same id every time.
    identity = identity_environment("roundkit", "roundkit@localhost", _EPOCH)
    message = f"The visible part of {plan.incumbent}\n".encode()
    commit = repository.git("commit-tree", tree, "-F", "-", env=identity, stdin=message).text
    repository.git("update-ref", _VISIBLE_REF, commit)
    return commit


def make_clone(store: Path, commit: str, clone: Path) -> None:
    """Make a clone at a commit: detached, with copied objects, no remote, no branch, no hook.

    Args:
        store: The round's own repository, which has the commit on a ref.
        commit: Where the clone starts.
        clone: Folder to make; it does not exist.
    """
    clone.mkdir(parents=True)
    source, repository = Repository(store), Repository(clone)
    object_format = source.git("rev-parse", "--show-object-format").text
    repository.git("init", "--quiet", "--template=", f"--object-format={object_format}")
    # Through a pipe, as from another machine: objects are copied, never linked.
    repository.git(
        "fetch", "--quiet", "--no-tags", "--update-shallow", f"file://{store}", _ref_of(source, commit)
    )
    (clone / ".git" / "FETCH_HEAD").unlink()
    repository.git("checkout", "--quiet", "--detach", commit)
    for key, value in (
        ("user.name", f"lane {clone.name}"),
        ("user.email", "lane@localhost"),
        ("gc.auto", "0"),
    ):
        repository.git("config", key, value)
    (clone / ".git" / "info").mkdir(exist_ok=True)
    (clone / ".git" / "info" / "exclude").write_text(_EXCLUDED)


def remove_clone(clone: Path) -> None:
    """Remove what a launch that was killed left of a clone."""
    if clone.exists():
        shutil.rmtree(clone)


def _ref_of(source: Repository, commit: str) -> str:
    return source.git("for-each-ref", "--count=1", f"--points-at={commit}", "--format=%(refname)").text
