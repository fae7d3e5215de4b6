"""The vocabulary of the boundary: what a caller grants, what held, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from roundkit.host.confine.proxy.destinations import AllowList

CpuSet = AbstractSet[int]
"""Numbers of the CPUs that the command may run on."""

EndReason = Literal[
    "exited",
    "signal",
    "deadline",
    "cpu",
    "output-limit",
    "disk-limit",
    "memory",
    "pids",
    "setup-failed",
    "stopped",
]
Counter = Literal["cgroup", "procfs"]
"""Where the CPU time was read."""

NetworkKind = Literal["none", "proxy", "host"]
DestinationOutcome = Literal[
    "allowed",
    "not-listed",
    "private-address",
    "unreachable",
    "malformed",
    "head-too-large",
    "head-too-slow",
]


def _is_empty(value: tuple[object, ...]) -> bool:
    return not value


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Mount:
    """One granted place.

    Attributes:
        source: Directory or file on the host, absolute and free of symbolic links.
        at: Where it appears inside the boundary.
    """

    source: Path
    at: Path


CHANGED = "changed"
"""Folder in an overlay's ``changes`` that is its upper layer."""
WORK = "work"
"""Folder beside it that the kernel works in."""


@dataclass(frozen=True)
class Overlay:
    """One granted folder put together of layers; nothing is copied, however large they are.

    Attributes:
        layers: Folders that are only read, the lowest first, absolute and free of symbolic links.
        at: Where the merged folder appears inside the boundary.
        changes: Folder for what the command changes, in ``changed`` and ``work``; None to let it change
            nothing, which takes two layers. No confined command may write to the folder that holds it, or
            to one that holds a layer.
    """

    layers: tuple[Path, ...]
    at: Path
    changes: Path | None = None


@dataclass(frozen=True)
class Network:
    """What the command may reach: nothing, named hosts through a proxy, or the host's network.

    Without the host's network the command has a loopback of its own and nothing else; the proxy listens
    there. Sockets that live in the file system (``AF_UNIX``) are closed to it in every case; connected stream
    pairs between its own processes are open.

    Attributes:
        kind: Which of the three.
        hosts: For ``proxy``, the hosts with their ports; empty otherwise.
    """

    kind: NetworkKind
    hosts: tuple[str, ...] = ()

    @classmethod
    def none(cls) -> Network:
        """Return a private network namespace with nothing in it."""
        return cls("none")

    @classmethod
    def proxy(cls, hosts: Iterable[str]) -> Network:
        """Return a private network namespace and a way through the coordinator to these hosts alone.

        A name never leads to a loopback, private or link-local address, unless the list also holds that
        address and port literally.

        Args:
            hosts: ``name``, ``name:port``, ``address:port`` or ``[address]:port``; the port is 443 unless
                given. Programs use it for ``https`` (``CONNECT``) and plain ``http`` alike.

        Raises:
            Refused: One of them is no host with a port (``network-host``).
        """
        return cls("proxy", tuple(sorted(map(str, AllowList.parse(hosts).hosts))))

    @classmethod
    def host(cls) -> Network:
        """Return the host's own network, loopback services included; only where the plan names it."""
        return cls("host")


class Limits(_Frozen):
    """What one command may use. Every figure comes from the frozen plan.

    Attributes:
        output_bytes: Bytes of each captured stream that are kept, half from its start, half from its end.
        output_kill_bytes: Bytes of both captured streams together that end the run (``output-limit``).
        file_bytes: Size that no file can grow beyond.
        disk_bytes: Growth of the writable places together, in allocated bytes, that ends the run
            (``disk-limit``); also holds for files that are deleted but still open.
        disk_files: Growth of the number of files in the writable places that ends the run.
        open_files: Descriptors that one process may hold.
        cpu_s: CPU seconds that end the run (``cpu``).
        memory_bytes: Memory of the whole run (cgroup), else address space of each process (rlimit).
        pids: Processes and threads of the whole run.
        tmp_bytes: Size of each private scratch file system (``/tmp``, ``/dev/shm``, ``HOME``).
        require: Limits that must hold for the run as a whole; if the host cannot, the run is refused.
    """

    output_bytes: int = Field(gt=0)
    output_kill_bytes: int = Field(gt=0)
    file_bytes: int = Field(gt=0)
    disk_bytes: int | None = Field(default=None, gt=0)
    disk_files: int | None = Field(default=None, gt=0)
    open_files: int = Field(ge=16)
    cpu_s: float | None = Field(default=None, gt=0)
    memory_bytes: int | None = Field(default=None, gt=0)
    pids: int | None = Field(default=None, gt=0)
    tmp_bytes: int = Field(gt=0)
    require: tuple[Literal["memory", "pids"], ...] = ()

    @model_validator(mode="after")
    def _required_are_set(self) -> Self:
        amounts = {"memory": self.memory_bytes, "pids": self.pids}
        unset = sorted(name for name in self.require if amounts[name] is None)
        if unset:
            raise ValueError(f"required without an amount: {', '.join(unset)}")
        return self


class MountRecord(_Frozen):
    """One mount that the command saw.

    Attributes:
        source: Place on the host; null for a private, empty file system.
        at: Place inside the boundary.
        mode: ``ro`` and ``rw``: read and written; ``private``: gone with the command.
    """

    source: str | None
    at: str
    mode: Literal["ro", "rw", "private"]


class LimitRecord(_Frozen):
    """One limit as it held.

    Attributes:
        name: Which one.
        value: What was granted, in the unit that the name ends in; null: without a limit.
        scope: What it holds for: the whole run, each process, or each file system.
        by: The mechanism; null where nothing enforced it.
    """

    name: str
    value: float | None
    scope: Literal["run", "process", "file-system"]
    by: str | None


class Boundary(_Frozen):
    """Everything a reviewer needs to know about what held around a command.

    Attributes:
        backend: Mechanism, ``bubblewrap``.
        version: Its version, as it prints it.
        uid: User id of the command, on the host and inside.
        dropped_from_root: Whether the coordinator was root and gave that up for the command.
        network: ``none``, ``proxy`` or ``host``.
        hosts: What the proxy allows, each with its port; only where there is one.
        seccomp: Whether a system call filter was loaded.
        mounts: Every mount in the order in which it was made.
        limits: Every limit, enforced or not.
        cpus: CPUs that the command was bound to, null if it was not.
        env_names: Names of the environment variables that it was given.
    """

    backend: Literal["bubblewrap"] = "bubblewrap"
    version: str
    uid: int
    dropped_from_root: bool
    network: NetworkKind
    seccomp: bool
    mounts: tuple[MountRecord, ...]
    limits: tuple[LimitRecord, ...]
    cpus: tuple[int, ...] | None
    env_names: tuple[str, ...]
    hosts: tuple[str, ...] = Field(default=(), exclude_if=_is_empty)

    def enforced(self) -> dict[str, str]:
        """Return the limits that held, each with the mechanism that enforced it."""
        return {limit.name: limit.by for limit in self.limits if limit.by is not None}


class Destination(_Frozen):
    """What a proxied command asked for, with one outcome.

    Attributes:
        host: Name or address as it was asked for; null where the request named none that can be read, and
            for what was asked for beyond the first 256 destinations.
        port: TCP port; null with the host.
        outcome: ``allowed``: connected. ``not-listed``: the plan does not name it. ``private-address``: it
            is named, but led to an address that only its own name in the list would open. ``unreachable``:
            it is named and did not answer. The others: the request was none.
        connections: How many requests there were.
        sent_bytes: Bytes that the command sent there.
        received_bytes: Bytes that came back.
    """

    host: str | None
    port: int | None
    outcome: DestinationOutcome
    connections: int
    sent_bytes: int
    received_bytes: int


class Execution(_Frozen):
    """What came of one confined command.

    Attributes:
        exit_code: Exit code of the command, null if it did not exit by itself.
        signal: Number of the signal that ended it, null if none did.
        end_reason: Why it ended; ``exited`` and ``signal`` are its own doing, ``stopped`` is the caller's.
        wall_s: Seconds on the monotonic clock from the start gate to the end; null if it never started.
        cpu_s: CPU seconds of the command and its descendants, null if unknown.
        cpu_source: Where ``cpu_s`` was read; ``procfs`` counts in clock ticks (10 ms as a rule) and leaves
            out children that nobody waited for.
        peak_memory_bytes: Peak of the whole run, where it was asked for or limited; null where no cgroup
            counted it.
        stdout_tail: Start and end of standard output, bounded; null if the caller took the stream itself.
        stderr_tail: Start and end of standard error, bounded.
        stdout_sha256: Digest of all bytes that were read; null if the caller took the stream.
        stderr_sha256: Digest of all bytes that were read.
        stdout_bytes: Bytes read from standard output; null if the caller took the stream.
        stderr_bytes: Bytes read from standard error.
        boundary: The boundary that held.
        detail: One line more about the end, where there is something to say.
        destinations: What it asked the proxy for, in the order in which it first did.
    """

    exit_code: int | None
    signal: int | None
    end_reason: EndReason
    wall_s: float | None
    cpu_s: float | None
    cpu_source: Counter | None
    peak_memory_bytes: int | None
    stdout_tail: str | None
    stderr_tail: str
    stdout_sha256: str | None
    stderr_sha256: str
    stdout_bytes: int | None
    stderr_bytes: int
    boundary: Boundary
    detail: str = ""
    destinations: tuple[Destination, ...] = Field(default=(), exclude_if=_is_empty)
