"""The boundary around a lane's agent: what it is granted of a round, and the call that runs it so.

It is the boundary of candidates, with a lane's grants: the clone to write, its ``.git`` and what roundkit put
there to read, a private home, the named credential files, and no network but the one that is named. The
store, other lanes, the campaign repository and devices are never among the grants.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from roundkit.core.clock import Deadline
from roundkit.core.errors import refuse
from roundkit.host.confine import CpuSet, Execution, Limits, Mount, Network, confined_execute

HOME = Path("/home/lane")
"""The agent's home inside; what it keeps there is the lane's alone and stays for its next attempt."""

COPIES = ".credentials"
"""End of the name of the folder with an agent's credentials, beside its home, while it runs."""

_READ_ONLY = (".roundkit/lane.json", ".roundkit/round", ".roundkit/status")
_SCRATCH = ".roundkit/scratch"
_MOST_CREDENTIAL_BYTES = 1 << 20


@dataclass(frozen=True)
class Credential:
    """A file of the coordinator's user that the plan names for an agent.

    Attributes:
        source: The file on the host.
        at: Where the agent finds it, relative to its home.
    """

    source: Path
    at: PurePosixPath


@dataclass(frozen=True)
class HomeFile:
    """A file that a driver writes for its agent, such as a tool's configuration.

    Attributes:
        content: What it holds; never a key.
        at: Where the agent finds it, relative to its home. It cannot change it.
    """

    content: bytes
    at: PurePosixPath


@dataclass(frozen=True)
class LaneFacts:
    """What the round and its plan say about one lane's agent.

    Attributes:
        clone: The lane's clone on the host, which appears inside at the same path.
        home: Folder on the host that holds the lane's private home, outside the clone; made when missing.
        hidden: What no grant may show: the round's folder and the campaign repository.
        readable: What else the agent needs to read: its own program, the plan's interpreter.
        credentials: The named credential files.
        files: Files that its driver writes.
        environment: Its variables, from the plan's allow-list.
        network: What it may reach.
        git_read_only: Whether ``.git`` is; false where its command-line tool cannot work so.
        scratch_at: Where there is no clone, but an empty scratch: where that appears inside.
    """

    clone: Path
    home: Path
    hidden: tuple[Path, ...]
    readable: tuple[Mount, ...] = ()
    credentials: tuple[Credential, ...] = ()
    files: tuple[HomeFile, ...] = ()
    environment: Mapping[str, str] | None = None
    network: Network = Network.none()  # noqa: RUF009 - frozen
    git_read_only: bool = True
    scratch_at: Path | None = None


@dataclass(frozen=True)
class LaneGrant:
    """Everything that one lane's agent is given.

    Attributes:
        cwd: Its working folder, the clone.
        writable: What it may change.
        readable: What it may read, without its credentials.
        credentials: Copied when it starts, so that the files themselves are out of its reach.
        files: Written when it starts.
        env: Its variables.
        network: What it may reach.
        copies: Folder on the host for the copies, which only the coordinator's user may enter.
    """

    cwd: Path
    writable: tuple[Mount, ...]
    readable: tuple[Mount, ...]
    credentials: tuple[Credential, ...]
    files: tuple[HomeFile, ...]
    env: Mapping[str, str]
    network: Network
    copies: Path


def lane_grant(facts: LaneFacts) -> LaneGrant:
    """Turn the facts about a lane into what its agent is granted.

    Raises:
        Refused: A place that an agent would read is hidden or covers what is (``lane-grant``), or a
            credential would lie outside its home (``credential-place``).
    """
    clone = facts.clone
    for place in facts.readable:
        _check_shown(place.source, facts.hidden)
    for credential in facts.credentials:
        _check_shown(credential.source, facts.hidden)
    places = [credential.at for credential in facts.credentials] + [file.at for file in facts.files]
    for place_at in places:
        if place_at.is_absolute() or ".." in place_at.parts or not place_at.parts:
            raise refuse("credential-place", f"{place_at} is no file below the agent's home")
    at = facts.scratch_at
    read_only = (*_READ_ONLY, *((".git",) if facts.git_read_only else ())) if at is None else ()
    return LaneGrant(
        cwd=at or clone,
        writable=(Mount(clone, at or clone), Mount(facts.home, HOME)),
        readable=(*facts.readable, *(Mount(clone / name, clone / name) for name in read_only)),
        credentials=facts.credentials,
        files=facts.files,
        env={
            **(facts.environment or {}),
            "HOME": str(HOME),
            "TMPDIR": str(clone / _SCRATCH if at is None else at),
        },
        network=facts.network,
        copies=facts.home.with_name(f"{facts.home.name}{COPIES}"),
    )


def _check_shown(source: Path, hidden: Sequence[Path]) -> None:
    """Refuse a place that is hidden, by whatever name, or that holds something hidden."""
    real = source.resolve()
    for secret in map(Path.resolve, hidden):
        if real.is_relative_to(secret) or secret.is_relative_to(real):
            raise refuse(
                "lane-grant",
                f"{source} would show an agent {secret}",
                remedy="keep programs and credentials outside the round and the campaign repository",
            )


def bound_lane(
    argv: Sequence[str],
    grant: LaneGrant,
    *,
    deadline: Deadline,
    limits: Limits,
    cpus: CpuSet | None = None,
    stdin: int | None = None,
    stdout: int | None = None,
    stop: int | None = None,
) -> Execution:
    """Run one lane's agent behind its boundary, and return once nothing of it is left.

    One agent at a time runs in a lane. A sandbox of the agent's own cannot work in here and is switched off
    by whoever starts it.

    Args:
        argv: Program and arguments, looked up inside the boundary.
        grant: What it is given.
        deadline: When everything of it ends, children in sessions of their own included.
        limits: What it may use.
        cpus: Cores that it is bound to; None for any.
        stdin: Pipe or socket for its standard input instead of nothing.
        stdout: Pipe or socket for its standard output, which is then not captured.
            Both are taken over, as by :func:`confined_execute`.
        stop: Descriptor of the caller's that ends the run as soon as it can be read.

    Returns:
        What came of it, with the hosts that it asked for.

    Raises:
        Refused: A place is missing, or the lane put a link where a grant belongs; or a credential is no
            regular file of at most 1 MiB (``credential-unreadable``).
        ConfinementUnavailable: The host cannot build the boundary or hold a required limit; nothing ran.
    """
    with ExitStack() as stack:
        try:
            grant.writable[-1].source.mkdir(mode=0o700, exist_ok=True)
            credentials = stack.enter_context(_copied(grant))
        except BaseException:
            for fd in (stdin, stdout):
                if fd is not None:
                    os.close(fd)
            raise
        return confined_execute(
            argv,
            cwd=grant.cwd,
            writable=grant.writable,
            readable=(*grant.readable, *credentials),
            deadline=deadline,
            env=grant.env,
            limits=limits,
            cpus=cpus,
            network=grant.network,
            stdin=stdin,
            stdout=stdout,
            stop=stop,
        )


@contextmanager
def _copied(grant: LaneGrant) -> Iterator[tuple[Mount, ...]]:
    """Write credentials and driver files into a folder that nobody else may enter, while the agent runs.

    Started by root, the agent is another user, for whom the files themselves are closed.
    """
    _remove(grant.copies)
    grant.copies.mkdir(mode=0o700)
    try:
        contents = [
            *((_read(credential.source), credential.at) for credential in grant.credentials),
            *((file.content, file.at) for file in grant.files),
        ]
        yield tuple(
            Mount(_write(content, grant.copies / str(number)), HOME / at)
            for number, (content, at) in enumerate(contents)
        )
    finally:
        _remove(grant.copies)


def _read(source: Path) -> bytes:
    try:
        if not source.is_file() or source.stat().st_size > _MOST_CREDENTIAL_BYTES:
            raise refuse("credential-unreadable", f"{source} is no regular file of at most 1 MiB")
        return source.read_bytes()
    except OSError as error:
        raise refuse("credential-unreadable", f"{source} cannot be read: {error.strerror}") from None


def _write(content: bytes, target: Path) -> Path:
    target.write_bytes(content)
    target.chmod(0o444)
    return target


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
