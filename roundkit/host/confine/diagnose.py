"""Finding out why a boundary cannot be built: by building it piece by piece, never by reading messages."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from roundkit.host.confine.seccomp import filter_program
from roundkit.host.confine.spawn import memory_file
from roundkit.host.confine.unavailable import ConfinementUnavailable

_WITHIN_S = 30
_CONTAINER = (
    "let the container make user namespaces and mount in them: docker run --security-opt seccomp=unconfined"
    " --security-opt apparmor=unconfined --security-opt systempaths=unconfined, or podman run"
    " --security-opt unmask=ALL"
)


@dataclass(frozen=True)
class Step:
    """One more piece of the boundary, and what its failure means.

    Attributes:
        name: What a person calls the piece.
        options: Options of bubblewrap that it adds.
        reason: Code of the failure.
        detail: What the failure means.
        remedy: What helps.
    """

    name: str
    options: tuple[str, ...]
    reason: str
    detail: str
    remedy: str


STEPS = (
    Step(
        "user and mount namespace",
        ("--unshare-user", "--ro-bind", "/", "/"),
        "userns-denied",
        "the kernel, a security module or the container refuses a user namespace with mounts in it",
        _CONTAINER,
    ),
    Step(
        "process namespace with its own /proc",
        ("--unshare-pid", "--proc", "/proc", "--remount-ro", "/proc"),
        "proc-masked",
        "a fresh /proc cannot be mounted, since the one outside is masked or read-only in part",
        _CONTAINER,
    ),
    Step(
        "network namespace",
        ("--unshare-net",),
        "netns-denied",
        "a private network namespace cannot be set up",
        _CONTAINER,
    ),
    Step(
        "IPC, host name and cgroup namespaces",
        ("--unshare-ipc", "--unshare-uts", "--unshare-cgroup"),
        "namespaces-denied",
        "one of the IPC, UTS and cgroup namespaces is refused",
        "use a kernel with all namespaces, Linux 5.6 or newer",
    ),
    Step(
        "minimal /dev",
        ("--dev", "/dev"),
        "dev-denied",
        "device files or a pseudo-terminal file system cannot be mounted",
        _CONTAINER,
    ),
    Step(
        "no further user namespaces",
        ("--disable-userns", "--cap-drop", "ALL", "--new-session", "--die-with-parent"),
        "userns-limit",
        "the limit on user namespaces leaves no room for the second one that shuts the door behind itself",
        "raise the limit: sysctl user.max_user_namespaces=10000",
    ),
)


def diagnose(prefix: Sequence[str]) -> ConfinementUnavailable | None:
    """Return what is missing first for the boundary, None if nothing is.

    Args:
        prefix: Words that start bubblewrap under the identity of confined commands.
    """
    return next((missing for _, missing in examine(prefix) if missing is not None), None)


def examine(prefix: Sequence[str]) -> Iterator[tuple[str, ConfinementUnavailable | None]]:
    """Build the boundary piece by piece; yield each piece and what is wrong with it, up to the first fault.

    Args:
        prefix: Words that start bubblewrap under the identity of confined commands.
    """
    for name, check in (("user of the commands", _identity), ("bubblewrap for that user", _binary)):
        missing = check(prefix)
        yield name, missing
        if missing is not None:
            return
    options: list[str] = []
    for step in STEPS:
        options += step.options
        if not _works([*prefix, *options, "--", "/bin/true"]):
            yield step.name, _user_namespaces(step) if step is STEPS[0] else _failed(step)
            return
        yield step.name, None
    yield "system call filter", _filter(prefix, options)


def _identity(prefix: Sequence[str]) -> ConfinementUnavailable | None:
    if len(prefix) == 1 or _works([*prefix[:-1], "/bin/true"]):
        return None
    return ConfinementUnavailable(
        "uid-drop",
        "root cannot become an unprivileged user here, as when its user namespace maps no other id",
        "start roundkit as an ordinary user, or map a range of ids into the container",
    )


def _binary(prefix: Sequence[str]) -> ConfinementUnavailable | None:
    if _works([*prefix, "--version"]):
        return None
    return ConfinementUnavailable(
        "bwrap-unreachable",
        f"{prefix[-1]} cannot be executed by the user that commands run as",
        "install it where every user can execute it",
    )


def _failed(step: Step) -> ConfinementUnavailable:
    return ConfinementUnavailable(step.reason, step.detail, step.remedy)


def _filter(prefix: Sequence[str], options: Sequence[str]) -> ConfinementUnavailable | None:
    with ExitStack() as stack:
        fd = memory_file("filter", filter_program(pin_cpus=False), stack)
        if _works([*prefix, *options, "--seccomp", str(fd), "--", "/bin/true"], fd):
            return None
    return ConfinementUnavailable(
        "seccomp-denied",
        "the kernel does not load a system call filter",
        "use a kernel with CONFIG_SECCOMP_FILTER",
    )


def _works(argv: Sequence[str], *fds: int) -> bool:
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={},
            pass_fds=fds,
            timeout=_WITHIN_S,
            cwd="/",
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _user_namespaces(step: Step) -> ConfinementUnavailable:
    """Name the most likely cause for which there is evidence."""
    for holds, reason, detail, remedy in _CAUSES:
        if holds():
            return ConfinementUnavailable(reason, detail, remedy)
    return _failed(step)


def _sysctl_is(name: str, value: str) -> bool:
    try:
        return Path("/proc/sys", name).read_text().strip() == value
    except OSError:
        return False


def _in_chroot() -> bool:
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return False
    return not any(line.split(" ")[4] == "/" for line in lines)


def _first_wsl() -> bool:
    release = os.uname().release
    return release.endswith("-Microsoft")


def _outer_filter() -> bool:
    try:
        return "\nSeccomp:\t2" in Path("/proc/self/status").read_text()
    except OSError:
        return False


_CAUSES: tuple[tuple[Callable[[], bool], str, str, str], ...] = (
    (
        lambda: _sysctl_is("user/max_user_namespaces", "0"),
        "userns-limit",
        "user.max_user_namespaces is 0",
        "sysctl user.max_user_namespaces=10000",
    ),
    (
        lambda: _sysctl_is("kernel/unprivileged_userns_clone", "0"),
        "userns-denied",
        "kernel.unprivileged_userns_clone is 0",
        "sysctl kernel.unprivileged_userns_clone=1",
    ),
    (
        lambda: _sysctl_is("kernel/apparmor_restrict_unprivileged_userns", "1"),
        "apparmor-userns",
        "AppArmor restricts unprivileged user namespaces to programs with a profile",
        "add a profile with the rule 'userns,' for this very bwrap path, or point ROUNDKIT_BWRAP at a binary"
        " that has one",
    ),
    (_in_chroot, "chroot", "the process runs in a chroot, where no user namespace can be made", "leave it"),
    (_first_wsl, "wsl1", "WSL 1 has no namespaces", "use WSL 2"),
    (
        _outer_filter,
        "outer-seccomp",
        "a system call filter around this process refuses namespaces",
        _CONTAINER,
    ),
)
