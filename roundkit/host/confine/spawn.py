"""Starting a process with exactly the descriptors that it is meant to have."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

FIRST_FREE_FD = 32
"""Lowest descriptor in the child after the fixed ones; above what the coordinator's own mostly are."""


def memory_file(name: str, content: bytes, stack: ExitStack) -> int:
    """Return a descriptor, at its start, of an anonymous file with this content."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    stack.callback(os.close, fd)
    os.pwrite(fd, content, 0)
    return fd


def spawn(argv: Sequence[str], fds: Mapping[int, int]) -> int:
    """Start ``argv`` with an empty environment, default signals and its own session.

    ``posix_spawn`` neither copies the page tables of a large coordinator nor runs Python in the child, so
    it is safe next to other threads.

    Args:
        argv: Program (absolute path) and arguments.
        fds: Descriptor in the child → descriptor here. Nothing else is passed on.

    Returns:
        The process id.

    Raises:
        OSError: The program cannot be executed.
    """
    above = max(fds) + 1
    with ExitStack() as stack:
        actions: list[tuple[int, int] | tuple[int, int, int]] = []
        for target, source in fds.items():
            # Lifted first where it carries a number that another one is about to take.
            if source in fds:
                source = fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, above)
                stack.callback(os.close, source)
            actions.append((os.POSIX_SPAWN_DUP2, source, target))
        closes = [(os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable_fds() if fd not in fds]
        return os.posix_spawn(
            argv[0],
            list(argv),
            {},
            file_actions=[*closes, *actions],
            setsid=True,
            setsigmask=(),
            setsigdef=_DEFAULTED,
        )


_DEFAULTED = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


def _inheritable_fds() -> list[int]:
    """List what a careless library left open across exec; the gate checks again from within."""
    found = []
    for fd in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - on every start
        try:
            if fd > 2 and os.get_inheritable(fd):
                found.append(fd)
        except OSError:
            continue
    return found
