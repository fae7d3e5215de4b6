"""Processes by descriptor, so that no signal or answer ever belongs to a later owner of the number."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

# ioctl PIDFD_GET_INFO of struct pidfd_info in its first size; the exit status came with Linux 6.15.
_GET_INFO = 0xC040FF0B
_INFO_SIZE = 64
_INFO_EXIT = 1 << 3
_EXIT_OFFSET = 60


def kill(pidfd: int) -> None:
    """Send SIGKILL; a process that is gone already is no error."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def await_death(pidfd: int, within_s: float) -> bool:
    """Wait until the process is dead; return False if it is not by then."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(within_s * 1000))


def wait_status(pidfd: int) -> int | None:
    """Return the wait status of a dead process, whoever its parent was; None if the kernel cannot say."""
    info = bytearray(_INFO_SIZE)
    struct.pack_into("=Q", info, 0, _INFO_EXIT)
    try:
        fcntl.ioctl(pidfd, _GET_INFO, info)
    except OSError:
        return None
    (mask,) = struct.unpack_from("=Q", info, 0)
    if not mask & _INFO_EXIT:
        return None
    (status,) = struct.unpack_from("=i", info, _EXIT_OFFSET)
    return int(status)


@cache
def tells_wait_status() -> bool:
    """Say whether this kernel tells the wait status of any dead process; tried out once on a child."""
    pid = os.posix_spawn("/bin/sh", ["/bin/sh", "-c", "exit 7"], {})
    pidfd = os.pidfd_open(pid)
    try:
        os.waitpid(pid, 0)
        status = wait_status(pidfd)
    finally:
        os.close(pidfd)
    return status is not None and os.WIFEXITED(status) and os.WEXITSTATUS(status) == 7


def descendants(pid: int) -> Iterator[int]:
    """Yield every process below ``pid``; everything in a process namespace descends from its init."""
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        with suppress(OSError):
            for task in Path(f"/proc/{current}/task").iterdir():
                with suppress(OSError):
                    children = [int(word) for word in (task / "children").read_text().split()]
                    waiting += children
                    yield from children


def tree_cpu_s(init_pid: int) -> float | None:
    """Return the CPU seconds of all below a namespace's init, dead and waited for or alive.

    Steps of one clock tick (10 ms as a rule). None if the init is gone.
    """
    ticks = _ticks(init_pid, own=False)
    if ticks is None:
        return None
    for pid in descendants(init_pid):
        ticks += _ticks(pid, own=True) or 0
    return ticks / os.sysconf("SC_CLK_TCK")


def _ticks(pid: int, *, own: bool) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in parentheses may hold anything; utime, stime, cutime and cstime follow it.
    fields = text.rpartition(")")[2].split()
    return sum(int(field) for field in fields[11 if own else 13 : 15])
