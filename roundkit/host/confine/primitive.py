"""``confined_execute``: the one way in which candidate code runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from roundkit.core.clock import Deadline
from roundkit.core.errors import refuse
from roundkit.host.confine.backend import find_backend
from roundkit.host.confine.bwrap import PRIVATE_PLACES, Arguments, Builder
from roundkit.host.confine.cgroup import Cgroup
from roundkit.host.confine.diagnose import diagnose
from roundkit.host.confine.gate import check_env, gate_argv
from roundkit.host.confine.identity import Identity, take_identity
from roundkit.host.confine.launch import Ending, Launch, take_over
from roundkit.host.confine.overlay import open_overlay
from roundkit.host.confine.ownership import lend
from roundkit.host.confine.places import Place, check_devices, open_places
from roundkit.host.confine.record import describe_limits, execution
from roundkit.host.confine.staging import with_staged
from roundkit.host.confine.types import (
    Boundary,
    CpuSet,
    Execution,
    Limits,
    Mount,
    MountRecord,
    Network,
    Overlay,
)
from roundkit.host.confine.unavailable import ConfinementUnavailable
from roundkit.host.confine.watch import DiskWatch

if TYPE_CHECKING:
    from roundkit.host.confine.proxy.service import Proxy


def confined_execute(
    argv: Sequence[str],
    *,
    cwd: Path,
    writable: Sequence[Path | Mount],
    readable: Sequence[Path | Mount],
    deadline: Deadline,
    env: Mapping[str, str],
    limits: Limits,
    cpus: CpuSet | None = None,
    overlay: Overlay | None = None,
    devices: Sequence[Path] = (),
    network: Network = Network.none(),  # noqa: B008 - frozen
    stdin: int | None = None,
    stdout: int | None = None,
    before_start: Callable[[int], None] | None = None,
    peak_memory: bool = False,
    stop: int | None = None,
) -> Execution:
    """Run one command behind the boundary, and return once nothing of it is left.

    Mounts are made shallow before deep, readable and writable together, so that a read-only file can lie
    over a writable checkout and a writable folder inside a read-only one. Started by root, the command
    runs as a user id of its own: the writable places, which the caller owns, belong to that id while it
    runs and to the caller again afterwards, and readable ones must be readable for everybody.

    Args:
        argv: Program and arguments, looked up inside the boundary.
        cwd: Working directory, inside.
        writable: What the command may change; one command at a time has a writable place.
        readable: What it may read besides the system's library and binary folders.
        deadline: When everything of it ends. The wall time counts from the start gate.
        env: Its environment, all of it.
        limits: What it may use.
        cpus: CPUs that it is bound to.
        overlay: A folder put together of layers; the other places may lie in it.
        devices: Device files below ``/dev`` that it may use, as far as their modes let everybody.
        network: What it may reach. With a proxy, ``HTTP_PROXY``, ``HTTPS_PROXY`` and ``NO_PROXY`` join its
            environment, in both spellings.
        stdin: Pipe or socket for its standard input instead of nothing.
        stdout: Pipe or socket for its standard output, which is then not captured.
            Both are taken over: they are closed here as soon as the command has its own, or on an error.
        before_start: Called with the command's process id, as the host sees it, while it waits at its gate;
            what it raises ends the run and is raised here.
        peak_memory: Whether its peak is read even where nothing limits its memory.
        stop: Descriptor that stays the caller's; the run ends (``stopped``) as soon as it can be read.

    Returns:
        What came of it. A command that does not exist inside is ``exited`` with code 127.

    Raises:
        Refused: Something that was asked for is never granted, or does not exist.
        ConfinementUnavailable: The host cannot build the boundary or hold a required limit; nothing ran.
    """
    with ExitStack() as stack:
        streams = take_over(stdin, stdout, stack)
        _check_request(argv, cwd, env, cpus)
        check_devices(devices)
        proxy = _proxy_of(network, stack)
        env = env if proxy is None else {**env, **proxy.variables()}
        backend = find_backend()
        places = open_places(writable, readable, stack)
        layers = None if overlay is None else open_overlay(overlay, places, stack)
        identity = take_identity(backend.path, stack)
        cgroup = Cgroup(limits, peak_memory=peak_memory)
        stack.callback(cgroup.close)
        _check_required(limits, cgroup)

        def at_gate(pid: int) -> None:
            if proxy is not None:
                proxy.start(pid, identity.uid)
            if before_start is not None:
                before_start(pid)

        def recorded(mounts: tuple[MountRecord, ...]) -> Boundary:
            return Boundary(
                version=backend.version,
                uid=identity.uid,
                dropped_from_root=identity.dropped,
                network=network.kind,
                seccomp=True,
                mounts=mounts,
                limits=describe_limits(limits, cgroup.enforced),
                cpus=None if cpus is None else tuple(sorted(cpus)),
                env_names=tuple(sorted(env)),
                hosts=network.hosts,
            )

        gated = gate_argv(argv, limits, cgroup.enforced)
        launch = Launch(identity, gated, streams, cpus, limits, deadline, cgroup, at_gate, recorded, stop)
        if layers is not None and identity.dropped:
            layers = layers.owned_by(identity.uid)
        granted = places if layers is None else [*places, *layers.places]
        disk = DiskWatch(granted, limits, PRIVATE_PLACES)

        def build_and_run(reachable: Sequence[Place]) -> Ending:
            made = stack.enter_context(ExitStack())
            build = Builder(
                reachable[: len(places)],
                uid=identity.uid,
                gid=identity.gid,
                network=network,
                stack=made,
                overlay=None if layers is None else layers.reached_by(reachable[len(places) :]),
                devices=devices,
            )

            def describe() -> Arguments:
                if identity.slot is not None:
                    lend(granted, identity.slot, stack)
                return build.arguments(cwd=PurePosixPath(cwd), env=env, limits=limits)

            return launch.run(build.fds, describe, disk, made)

        if identity.dropped:
            ending = with_staged(granted, build_and_run, launch.abandon)
        else:
            ending = build_and_run(granted)
        _check_built(ending, identity)
        done = execution(argv, ending, limits, cgroup)
        return done if proxy is None else done.model_copy(update={"destinations": proxy.close()})


def _check_built(ending: Ending, identity: Identity) -> None:
    """Raise why this host builds no boundary at all, where that is why nothing was started."""
    if ending.course.started or ending.course.reason is not None:
        return
    # Either this host cannot do it at all, or this call asked for something that cannot be built.
    unavailable = diagnose(identity.prefix)
    if unavailable is not None:
        raise unavailable


def _proxy_of(network: Network, stack: ExitStack) -> Proxy | None:
    if network.kind != "proxy":
        return None
    # It takes asyncio, which no measured command should wait for.
    from roundkit.host.confine.proxy.service import Proxy

    proxy = Proxy(network.hosts)
    stack.callback(proxy.close)
    return proxy


def _check_request(argv: Sequence[str], cwd: Path, env: Mapping[str, str], cpus: CpuSet | None) -> None:
    if not argv or any("\0" in word for word in argv):
        raise refuse("command", "a command is a program and its arguments, without null bytes")
    if not cwd.is_absolute() or ".." in cwd.parts:
        raise refuse("working-directory", f"{cwd} is not an absolute path")
    check_env(env)
    if cpus is None:
        return
    missing = cpus - os.sched_getaffinity(0) if cpus else None
    if missing is None or missing:
        raise refuse(
            "cpu-set",
            f"CPUs {sorted(missing or ())} are not there for this process",
            remedy=f"choose among {sorted(os.sched_getaffinity(0))}",
        )


def _check_required(limits: Limits, cgroup: Cgroup) -> None:
    missing = sorted(set(limits.require) - cgroup.enforced.keys())
    if missing:
        raise ConfinementUnavailable(
            "limit-not-enforceable",
            f"{' and '.join(missing)} of the whole run must be limited, which takes a cgroup that this"
            " process may write",
            "run under a delegated cgroup (systemd-run --user --scope -p Delegate=yes …), as root, or take"
            f" {', '.join(missing)} out of limits.require",
        )
