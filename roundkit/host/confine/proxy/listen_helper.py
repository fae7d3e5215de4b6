"""Enters a network namespace, listens on its loopback and passes the socket on; run as a program.

Arguments: descriptor to pass the socket over, process id, user id, port.
"""

import ctypes
import fcntl
import os
import socket
import sys

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_NS_GET_USERNS = 0xB701
_BACKLOG = 128


def _enter(namespace: int, kind: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, kind) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _main(channel: int, pid: int, uid: int, port: int) -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    # The command sits in a nested user namespace; the network belongs to the one around it.
    _enter(fcntl.ioctl(network, _NS_GET_USERNS), _CLONE_NEWUSER)
    _enter(network, _CLONE_NEWNET)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", port))
    listener.listen(_BACKLOG)
    socket.send_fds(socket.socket(fileno=channel), [b"s"], [listener.fileno()])


if __name__ == "__main__":
    try:
        _main(*map(int, sys.argv[1:]))
    except OSError as error:
        sys.exit(str(error))
