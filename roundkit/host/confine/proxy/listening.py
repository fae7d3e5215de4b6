"""A listening socket on the loopback of somebody else's network namespace, held by the coordinator."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from roundkit.host.confine.unavailable import ConfinementUnavailable

PORT = 3128
"""Where the proxy listens inside; the namespace is the command's alone, so that the port is free."""

_WITHIN_S = 30


def listen_inside(pid: int, uid: int) -> socket.socket:
    """Return a socket that listens on ``127.0.0.1`` at :data:`PORT` of a process's network namespace.

    A process of its own enters the namespace, since a thread of a process with others cannot enter another
    user namespace, and hands the socket out. It runs before the command does, as the command's user.

    Args:
        pid: Process inside, which waits.
        uid: User that made the namespace; a coordinator that is root becomes that user first.

    Raises:
        ConfinementUnavailable: The namespace cannot be entered (``proxy-namespace``).
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        helper = Path(__file__).with_name("listen_helper.py")
        words = (str(theirs.fileno()), str(pid), str(uid), str(PORT))
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", helper, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env={},
                pass_fds=(theirs.fileno(),),
                timeout=_WITHIN_S,
                cwd="/",
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _unavailable(str(error)) from None
        if done.returncode:
            raise _unavailable(done.stderr.decode("utf-8", "replace").strip())
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    os.set_inheritable(fds[0], False)
    return socket.socket(fileno=fds[0])


def _unavailable(why: str) -> ConfinementUnavailable:
    return ConfinementUnavailable(
        "proxy-namespace",
        f"the proxy cannot listen in the command's network namespace: {why}",
        "run on a kernel that lets the owner of a user namespace enter it, or give the lane no network",
    )
