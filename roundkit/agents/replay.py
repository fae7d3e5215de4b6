"""The replay driver: no agent, but changes that exist already, laid into a lane's clone and submitted.

What works in the clone runs behind the lane's boundary: a clone is whatever was made of it, and git does what
its configuration says.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundkit.agents.replay_room import ReplayRoom
from roundkit.core.clock import Deadline
from roundkit.core.errors import RoundkitError
from roundkit.core.git import Repository
from roundkit.core.globs import GlobSet, exact_glob
from roundkit.core.process import CommandFailed
from roundkit.models.lane import LaunchLane
from roundkit.models.round_plan import FrozenLane


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


def check_sources(lane: FrozenLane, repository: Path, *, base: str) -> None:
    """Look for what a lane replays, before an attempt is claimed for it.

    Args:
        lane: The lane.
        repository: The repository in which commits and branches are looked up.
        base: The incumbent.

    Raises:
        CannotReplay: a source is unknown, or a file that is no patch.
    """
    for source in lane.replay:
        try:
            _paths(_patch(Repository(repository), base, source))
        except CommandFailed as error:
            raise CannotReplay(f"{source!r} is no patch: {error.completed.error_tail}") from error


def run_replay(
    lane: FrozenLane | LaunchLane,
    room: ReplayRoom,
    repository: Path,
    sources: Sequence[str] | None = None,
    *,
    base: str,
    deadline: Deadline | None = None,
    afresh: bool = False,
) -> ReplayOutcome:
    """Lay one source after the other into a lane's clone and submit after each.

    Sources add up. Of each, only what falls under the lane's globs is applied. A source that does not fit
    on what lies there is recorded as such, and the next one is tried.

    Args:
        lane: The lane.
        room: Its clone, and the boundary around it.
        repository: The repository in which commits and branches are looked up.
        sources: Commits (their change against the first parent), ranges ``A..B``, branches (their change
            since they left the base) or patch files; the frozen lane's own unless given.
        base: The incumbent.
        deadline: When a running submission is killed; null for a limit of its own.
        afresh: Take back first what an earlier replay that was cut off left in the clone.

    Raises:
        CannotReplay: a source is unknown.
        CommandFailed: git of the repository is broken.
        RoomFailed: what ran in the lane's boundary broke, or the deadline was reached.
        ConfinementUnavailable: the host cannot build the boundary.
    """
    if sources is None:
        sources = lane.replay if isinstance(lane, FrozenLane) else ()
    known = Repository(repository)
    patches = [(source, _patch(known, base, source)) for source in sources]
    globs = GlobSet(lane.globs)
    if afresh:
        room.reset(deadline)
    steps = [_step(room, globs, source, patch, deadline) for source, patch in patches]
    return ReplayOutcome(lane.id, tuple(steps))


def _patch(repository: Repository, base: str, source: str) -> bytes:
    """Return a source as a patch."""
    file = Path(source) if Path(source).is_absolute() else repository.path / source
    if file.is_file():
        return file.read_bytes()
    before, after = _ends(repository, base, source)
    options = (
        "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color",
        "--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "--submodule=short",
    )  # fmt: skip
    return repository.git("diff", *options, before, after, "--").stdout


def _ends(repository: Repository, base: str, source: str) -> tuple[str, str]:
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
        fork = repository.git("merge-base", base, after, check=False).text
        if fork:
            return fork, after
    parent = repository.resolve(f"{after}^1")
    empty = repository.git("hash-object", "-t", "tree", "--stdin").text
    return parent or empty, after


def _step(
    room: ReplayRoom, globs: GlobSet, source: str, patch: bytes, deadline: Deadline | None
) -> ReplayStep:
    paths = _paths(patch)
    inside = [path for path in paths if globs.matches(path)]
    left_out = tuple(path for path in paths if not globs.matches(path))
    if not inside:
        return ReplayStep(source, (), left_out, None, "nothing-in-scope", False, "changes nothing in scope")
    why_not = room.apply(patch, [f"--include={exact_glob(path)}" for path in inside], deadline)
    if why_not is not None:
        return ReplayStep(source, (), left_out, None, "does-not-apply", False, f"does not apply: {why_not}")
    answer: dict[str, Any] = room.submit(deadline)
    ticket = answer.get("ticket")
    problem = None if ticket else str(answer.get("message", answer["status"]))
    duplicate = bool(answer.get("duplicate", False))
    return ReplayStep(source, tuple(inside), left_out, ticket, str(answer["status"]), duplicate, problem)


def _paths(patch: bytes) -> list[str]:
    """List the paths that a patch changes."""
    if not patch.strip():
        return []
    # In an empty folder: a clone's own configuration has no say in what is read here.
    with tempfile.TemporaryDirectory() as nowhere:
        outside = {"GIT_CEILING_DIRECTORIES": str(Path(nowhere).parent)}
        listed = Repository(Path(nowhere)).git("apply", "--numstat", "-z", "-", stdin=patch, env=outside)
    rows = listed.stdout.split(b"\0")
    return [row.split(b"\t", 2)[2].decode("utf-8", "surrogateescape") for row in rows if row]
