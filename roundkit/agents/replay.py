"""The replay driver: no agent, but changes that exist already, laid into a lane's clone and submitted."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundkit.core.clock import Deadline
from roundkit.core.errors import RoundkitError
from roundkit.core.git import Repository
from roundkit.core.globs import GlobSet, exact_glob
from roundkit.core.process import run
from roundkit.core.resources import lane_wrapper
from roundkit.models.lane import LaunchLane
from roundkit.models.round_plan import FrozenLane

_SUBMIT_TIMEOUT_S = 600.0
_REFUSED = 3


@dataclass(frozen=True)
class ReplayStep:
    """One source, laid into the clone and submitted.

    Attributes:
        source: The commit, range, branch or patch file, as the plan names it.
        applied: Paths under the lane's globs that the source changes.
        left_out: Paths that it changes elsewhere.
        ticket: What the wrapper answered; null when there was nothing to submit.
        status: The state it answered, e.g. ``queued``, ``nothing-changed`` or ``refused``.
        duplicate: Whether the same files were submitted before.
        problem: Why nothing was submitted; null when something was.
    """

    source: str
    applied: tuple[str, ...]
    left_out: tuple[str, ...]
    ticket: str | None
    status: str
    duplicate: bool
    problem: str | None


@dataclass(frozen=True)
class ReplayOutcome:
    """What became of every source of one lane, in order."""

    lane: str
    steps: tuple[ReplayStep, ...]

    @property
    def tickets(self) -> tuple[str, ...]:
        """The distinct tickets, in the order in which they were first given."""
        return tuple(dict.fromkeys(step.ticket for step in self.steps if step.ticket is not None))

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be replayed, one line a source."""
        return tuple(f"{step.source}: {step.problem}" for step in self.steps if step.problem is not None)


class CannotReplay(RoundkitError):
    """A source is neither a patch file nor something that the repository knows."""


def run_replay(
    lane: FrozenLane | LaunchLane,
    clone: Path,
    repository: Path,
    sources: Sequence[str] | None = None,
    *,
    deadline: Deadline | None = None,
    afresh: bool = False,
) -> ReplayOutcome:
    """Lay one source after the other into a lane's clone and submit after each.

    Sources add up. Of each, only what falls under the lane's globs is applied. A source that does not fit
    on what lies there is recorded as such, and the next one is tried.

    Args:
        lane: The lane.
        clone: Its clone.
        repository: The repository in which commits and branches are looked up.
        sources: Commits (their change against the first parent), ranges ``A..B``, branches (their change
            since they left the clone's base) or patch files; the frozen lane's own unless given.
        deadline: When a running submission is killed; null for the wrapper's own limit.
        afresh: Take back first what an earlier replay that was cut off left in the clone.

    Raises:
        CannotReplay: a source is unknown.
        CommandFailed: git or the wrapper is broken, or the deadline was reached.
    """
    if sources is None:
        sources = lane.replay if isinstance(lane, FrozenLane) else ()
    known = Repository(repository)
    patches = [(source, _patch(known, Repository(clone), source)) for source in sources]
    globs = GlobSet(lane.globs)
    if afresh:
        Repository(clone).git("reset", "--quiet", "--hard")
        Repository(clone).git("clean", "--quiet", "--force", "-d")
    steps = [_step(Repository(clone), globs, source, patch, deadline) for source, patch in patches]
    return ReplayOutcome(lane.id, tuple(steps))


def _patch(repository: Repository, clone: Repository, source: str) -> bytes:
    """Return a source as a patch."""
    file = Path(source) if Path(source).is_absolute() else repository.path / source
    if file.is_file():
        return file.read_bytes()
    before, after = _ends(repository, clone, source)
    options = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
    return repository.git("diff", *options, before, after, "--").stdout


def _ends(repository: Repository, clone: Repository, source: str) -> tuple[str, str]:
    """Return the two trees or commits between which a source's change lies."""
    first, dots, last = source.partition("..")
    after = repository.resolve(last if dots else source)
    if after is None:
        raise CannotReplay(
            f"{source!r} is neither a patch file nor a commit, range or branch of {repository.path}"
        )
    if dots:
        before = repository.resolve(first)
        if before is None:
            raise CannotReplay(f"{repository.path} has no commit {first!r}")
        return before, after
    if repository.branch_exists(source):
        base = repository.git("merge-base", clone.git("rev-parse", "HEAD").text, after, check=False).text
        if base:
            return base, after
    parent = repository.resolve(f"{after}^1")
    empty = repository.git("hash-object", "-t", "tree", "--stdin").text
    return parent or empty, after


def _step(
    clone: Repository, globs: GlobSet, source: str, patch: bytes, deadline: Deadline | None
) -> ReplayStep:
    paths = _paths(clone, patch)
    inside = [path for path in paths if globs.matches(path)]
    left_out = tuple(path for path in paths if not globs.matches(path))
    if not inside:
        return ReplayStep(source, (), left_out, None, "nothing-in-scope", False, "changes nothing in scope")
    included = [f"--include={exact_glob(path)}" for path in inside]
    applied = clone.git("apply", "--whitespace=nowarn", *included, "-", stdin=patch, check=False)
    if applied.exit_code != 0:
        detail = f"does not apply: {applied.error_tail}"
        return ReplayStep(source, (), left_out, None, "does-not-apply", False, detail)
    answer = _submit(clone.path, deadline)
    ticket = answer.get("ticket")
    problem = None if ticket else str(answer.get("message", answer["status"]))
    duplicate = bool(answer.get("duplicate", False))
    return ReplayStep(source, tuple(inside), left_out, ticket, str(answer["status"]), duplicate, problem)


def _paths(clone: Repository, patch: bytes) -> list[str]:
    """List the paths that a patch changes."""
    if not patch.strip():
        return []
    rows = clone.git("apply", "--numstat", "-z", "-", stdin=patch).stdout.split(b"\0")
    return [row.split(b"\t", 2)[2].decode("utf-8", "surrogateescape") for row in rows if row]


def _submit(clone: Path, deadline: Deadline | None) -> dict[str, Any]:
    """Submit with the wrapper that ships with roundkit: the clone's copy is as trusted as the clone."""
    left_s = _SUBMIT_TIMEOUT_S if deadline is None else min(_SUBMIT_TIMEOUT_S, deadline.remaining_s())
    done = run(
        [sys.executable, "-I", lane_wrapper(), "submit"], cwd=clone, timeout_s=left_s, check=False,
        env={**os.environ, "ROUNDKIT_LANE_HOME": str(clone / ".roundkit")},
    )  # fmt: skip
    if done.exit_code not in {0, _REFUSED}:
        raise RoundkitError(f"submitting from {clone} failed: {done.text} {done.error_tail}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
