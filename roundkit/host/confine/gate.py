"""The start gate: the last thing before the command, which waits for an explicit word.

A coordinator that dies leaves an end of file, and an end of file means *leave*, never *go*. The gate is a
shell, since nothing else is sure to exist in every root, and talks over descriptor 3.
"""

from __future__ import annotations

import math
import re
import socket
import struct
from collections.abc import Collection, Mapping, Sequence

from roundkit.core.errors import refuse
from roundkit.host.confine.types import Limits

GATE_FD = 3
READY = b"ready\n"
MISSING = b"missing\n"
GO = b"go\n"

_BLOCK_BYTES = 512
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SHELL_OWNED = frozenset({"IFS", "OLDPWD", "OPTIND", "PPID", "PWD", "SHLVL", "_"})
_CREDENTIALS = struct.Struct("=iII")

_SCRIPT = """\
unset PWD OLDPWD SHLVL
{limits} || exit 125
for _rk_fd in /proc/self/fd/*; do
case ${{_rk_fd##*/}} in 0|1|2|3) ;; *) [ ! -e "$_rk_fd" ] || exit 125;; esac
done
if command -v "$1" >/dev/null 2>&1; then echo ready >&3; else echo missing >&3; fi
read -r _rk_word <&3 && [ "$_rk_word" = go ] || exit 125
exec "$@" 3>&-
"""


def check_env(env: Mapping[str, str]) -> None:
    """Refuse an environment that cannot reach the command unchanged.

    Raises:
        Refused: A name is no identifier or belongs to the shell, or a value holds a null byte.
    """
    for name, value in env.items():
        if not _ENV_NAME.match(name) or name in _SHELL_OWNED or name.startswith("_rk_"):
            raise refuse("env-name", f"{name!r} cannot be passed on", remedy="rename the variable")
        if "\0" in value:
            raise refuse("env-value", f"the value of {name} contains a null byte")


def gate_argv(command: Sequence[str], limits: Limits, by_cgroup: Collection[str]) -> list[str]:
    """Return the shell command that sets the limits, waits at the gate and becomes ``command``.

    Args:
        command: Program and arguments.
        limits: Limits to set on the process and whatever it starts.
        by_cgroup: Names of the limits that a cgroup holds for the whole run. Without one, memory is bounded
            as the address space of each process, and processes as those of the user in its namespace.
    """
    settings = [
        "ulimit -c 0",
        f"ulimit -f {math.ceil(limits.file_bytes / _BLOCK_BYTES)}",
        f"ulimit -n {limits.open_files}",
    ]
    if limits.cpu_s is not None:
        # Behind the whole run's limit, where there is one, so that it is the one that is met and named.
        seconds = math.ceil(limits.cpu_s) + ("cpu" in by_cgroup)
        settings.append(f"ulimit -S -t {seconds} && ulimit -H -t {seconds + 1}")
    if limits.memory_bytes is not None and "memory" not in by_cgroup:
        settings.append(f"ulimit -v {math.ceil(limits.memory_bytes / 1024)}")
    if limits.pids is not None and "pids" not in by_cgroup:
        # One more for the namespace's init. bash knows the limit as -u, the other shells as -p.
        count = limits.pids + 1
        settings.append(f'if [ -n "${{BASH_VERSION-}}" ]; then ulimit -u {count}; else ulimit -p {count}; fi')
    return ["/bin/sh", "-c", _SCRIPT.format(limits=" && ".join(settings)), "gate", *command]


class Gate:
    """The coordinator's end of the gate.

    Attributes:
        fd: Descriptor to poll.
    """

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        # The kernel attests the sender's process id as seen from here; the command has no say in it.
        self._ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._ours.setblocking(False)
        self.fd = self._ours.fileno()

    def receive(self) -> tuple[bytes, int | None]:
        """Return the gate's word and the process id of its sender; empty at the end of file."""
        room = socket.CMSG_SPACE(_CREDENTIALS.size)
        try:
            word, ancillary, _, _ = self._ours.recvmsg(64, room)
        except (BlockingIOError, ConnectionResetError):
            return b"", None
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                return word, int(_CREDENTIALS.unpack(payload[: _CREDENTIALS.size])[0])
        return word, None

    def go(self) -> None:
        """Let the command start."""
        self._ours.send(GO)

    def close(self) -> None:
        """Close both ends; a gate that still waits reads an end of file and leaves."""
        self._ours.close()
        self.theirs.close()
