"""The system call filter: a classic BPF program, assembled here, loaded by bubblewrap.

The mount namespace says what can be reached by name. The filter takes away what does not go by name:
other processes, keyrings, kernel interfaces, new namespaces, sockets that live in the file system, and
the file modes that would hand somebody else's rights to whoever runs a left-over file.
"""

from __future__ import annotations

import errno
import platform
import socket
import struct
from functools import cache

from roundkit.host.confine.syscalls import ARCHITECTURES, DENIED, MODE_CREATING, NEWEST_KNOWN, Architecture
from roundkit.host.confine.unavailable import ConfinementUnavailable

_LOAD_WORD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_GREATER = 0x25
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06
_AND = 0x54

_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000

_NUMBER_OFFSET = 0
_ARCHITECTURE_OFFSET = 4

_NEW_NAMESPACE_FLAGS = 0x7E020000
_SET_ID_BITS = 0o6000
_CREATING_FLAGS = 0o100 | 0o20000000  # O_CREAT and the bit that sets O_TMPFILE apart
_FILE_TYPE_MASK = 0o170000
_CHARACTER_DEVICE = 0o020000
_BLOCK_DEVICE = 0o060000
_SOCKET_TYPE_MASK = 0xF
_TIOCSTI = 0x5412
_TIOCLINUX = 0x541C
_FADV_DONTNEED = 4
_MADV_COLD, _MADV_PAGEOUT = 20, 21
_RWF_NOWAIT = 0x8
_MPOL_MF_MOVES = 0x6  # MPOL_MF_MOVE and MPOL_MF_MOVE_ALL
_PR_SCHED_CORE = 62
_DONE = 0

Instruction = tuple[int, int, int, int]


def _argument(index: int) -> Instruction:
    """Load the low word of one system call argument; both architectures are little-endian."""
    return (_LOAD_WORD, 0, 0, 16 + 8 * index)


def _refuse(number: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | number)


def _refuse_if(code: int, operand: int, error: int = errno.EPERM) -> list[Instruction]:
    return [(code, 0, 1, operand), _refuse(error)]


def _refuse_unless_equal(operands: list[int], error: int) -> list[Instruction]:
    """Refuse the loaded word unless it is one of ``operands``."""
    checks = [(_JUMP_EQUAL, len(operands) - index, 0, operand) for index, operand in enumerate(operands)]
    return [*checks, _refuse(error)]


def _when(number: int, body: list[Instruction]) -> list[Instruction]:
    """Run ``body`` for one system call; whatever falls through it goes on with the number loaded again."""
    return [
        (_JUMP_EQUAL, 0, len(body) + 1, number),
        *body,
        (_LOAD_WORD, 0, 0, _NUMBER_OFFSET),
    ]


def _denials(arch: Architecture, pin_cpus: bool) -> list[Instruction]:
    denied = [arch.number(name) for name in DENIED]
    if pin_cpus:
        denied.append(arch.number("sched_setaffinity"))
    program: list[Instruction] = []
    for number in denied:
        if number is not None:
            program += _refuse_if(_JUMP_EQUAL, number)
    # Their flags or modes live in memory, where a filter cannot look: make libraries use the older calls.
    for name in ("clone3", "openat2"):
        program += _refuse_if(_JUMP_EQUAL, arch.require(name), errno.ENOSYS)
    return program


def _argument_checks(arch: Architecture) -> list[Instruction]:
    program = _when(arch.require("clone"), [_argument(0), *_refuse_if(_JUMP_ANY_BIT, _NEW_NAMESPACE_FLAGS)])
    inet = [int(socket.AF_INET), int(socket.AF_INET6)]
    program += _when(arch.require("socket"), [_argument(0), *_refuse_unless_equal(inet, errno.EAFNOSUPPORT)])
    # A datagram pair can still send to a socket by path; a connected stream pair cannot.
    program += _when(
        arch.require("socketpair"),
        [
            _argument(1),
            (_AND, 0, 0, _SOCKET_TYPE_MASK),
            *_refuse_unless_equal([int(socket.SOCK_STREAM)], errno.EPROTONOSUPPORT),
        ],
    )
    program += _when(
        arch.require("ioctl"),
        [_argument(1), *_refuse_if(_JUMP_EQUAL, _TIOCSTI), *_refuse_if(_JUMP_EQUAL, _TIOCLINUX)],
    )
    # A core that nobody else's threads may share would be quieter for one side than for the other.
    program += _when(arch.require("prctl"), [_argument(0), *_refuse_if(_JUMP_EQUAL, _PR_SCHED_CORE)])
    return program + _cache_checks(arch) + _mode_checks(arch)


def _cache_checks(arch: Architecture) -> list[Instruction]:
    """Take no advice to forget what both sides read, do not move it, and do not tell what is remembered.

    Both sides of a pair read files of the incumbent and of the system from one page cache: whoever empties it
    at its end slows the trial after it. Advice binds nobody, so it is answered as taken.
    """
    drop = _refuse_if(_JUMP_EQUAL, _FADV_DONTNEED, _DONE)
    program = _when(arch.require("fadvise64"), [_argument(3), *drop])
    cold = [*_refuse_if(_JUMP_EQUAL, _MADV_COLD, _DONE), *_refuse_if(_JUMP_EQUAL, _MADV_PAGEOUT, _DONE)]
    program += _when(arch.require("madvise"), [_argument(2), *cold])
    # To other memory: what one process alone has mapped may be in the cache for the next trial's, too.
    program += _when(arch.require("mbind"), [_argument(5), *_refuse_if(_JUMP_ANY_BIT, _MPOL_MF_MOVES)])
    # Told of a file to whoever it belongs to. Who only asks whether an address is mapped has another way.
    program += _refuse_if(_JUMP_EQUAL, arch.require("mincore"), errno.ENOSYS)
    return program + _when(
        arch.require("preadv2"), [_argument(5), *_refuse_if(_JUMP_ANY_BIT, _RWF_NOWAIT, errno.EOPNOTSUPP)]
    )


def _mode_checks(arch: Architecture) -> list[Instruction]:
    program: list[Instruction] = []
    for name, (mode_index, flags_index) in MODE_CREATING.items():
        number = arch.number(name)
        if number is None:
            continue
        check = [_argument(mode_index), *_refuse_if(_JUMP_ANY_BIT, _SET_ID_BITS)]
        if flags_index is not None:
            # Without a creating flag the mode argument is whatever the register held.
            check = [_argument(flags_index), (_JUMP_ANY_BIT, 0, len(check), _CREATING_FLAGS), *check]
        program += _when(number, check)
    for name, mode_index in (("mknod", 1), ("mknodat", 2)):
        number = arch.number(name)
        if number is None:
            continue
        check = [
            _argument(mode_index),
            *_refuse_if(_JUMP_ANY_BIT, _SET_ID_BITS),
            (_AND, 0, 0, _FILE_TYPE_MASK),
            *_refuse_if(_JUMP_EQUAL, _CHARACTER_DEVICE),
            *_refuse_if(_JUMP_EQUAL, _BLOCK_DEVICE),
        ]
        program += _when(number, check)
    return program


def architecture(machine: str | None = None) -> Architecture:
    """Return the system call table of a machine, by default of this one.

    Raises:
        ConfinementUnavailable: There is no table for it (``seccomp-arch``).
    """
    machine = platform.machine() if machine is None else machine
    try:
        return ARCHITECTURES[machine]
    except KeyError:
        raise ConfinementUnavailable(
            "seccomp-arch",
            f"there is no system call table for {machine!r}",
            f"run on one of {', '.join(sorted(ARCHITECTURES))}",
        ) from None


@cache
def filter_program(*, pin_cpus: bool, machine: str | None = None) -> bytes:
    """Assemble the filter as the kernel's ``struct sock_filter`` array.

    Args:
        pin_cpus: Also refuse to change the CPU affinity that the coordinator set.
        machine: Machine name as ``uname -m`` prints it, by default this one.

    Raises:
        ConfinementUnavailable: The machine is not known (``seccomp-arch``).
    """
    arch = architecture(machine)
    program: list[Instruction] = [
        (_LOAD_WORD, 0, 0, _ARCHITECTURE_OFFSET),
        (_JUMP_EQUAL, 1, 0, arch.audit),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD_WORD, 0, 0, _NUMBER_OFFSET),
        # Above the last call that was reviewed: newer ones, and the x32 numbers of x86-64.
        *_refuse_if(_JUMP_GREATER, NEWEST_KNOWN, errno.ENOSYS),
        *_denials(arch, pin_cpus),
        *_argument_checks(arch),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(
        struct.pack("=HBBI", code, when_true, when_false, operand)
        for code, when_true, when_false, operand in program
    )
