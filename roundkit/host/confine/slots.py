"""User ids for confined work when the coordinator is root: one per running command, held by a lock.

Ids 61000 to 61127 are used. The range lies outside those that distributions, systemd and container
engines hand out; an id that the machine's user database knows is left out.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import signal
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from roundkit.host.confine.runtime import runtime_dir
from roundkit.host.confine.unavailable import ConfinementUnavailable

FIRST_UID = 61000
SLOTS = 128

_DIRTY = b"in use"
_LEFTOVER_WAIT_S = 10.0


@dataclass(frozen=True)
class Slot:
    """One user id that no other running command has; the group has the same number.

    Attributes:
        uid: The user id.
        lock_fd: Descriptor of its lock file, which holds the lock and says what the command may write.
    """

    uid: int
    lock_fd: int

    def note(self, places: Iterable[Path]) -> None:
        """Write down what the command may write, for others to see."""
        os.pwrite(self.lock_fd, _DIRTY + b"".join(b"\0" + os.fsencode(path) for path in places), 0)


def is_slot_uid(uid: int) -> bool:
    """Say whether an id belongs to the range."""
    return FIRST_UID <= uid < FIRST_UID + SLOTS


def take_slot(stack: ExitStack) -> Slot:
    """Take a free user id until ``stack`` closes.

    Raises:
        ConfinementUnavailable: All are taken (``slots``), or processes of a dead coordinator's command
            cannot be ended (``leftover-processes``).
    """
    folder = _folder()
    for number in _usable():
        fd = os.open(f"{folder}/{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            continue
        stack.callback(os.close, fd)
        # A mark that is still there means that its coordinator died: its last processes may be dying.
        if os.read(fd, len(_DIRTY)):
            # What the dead command might write is nobody's any more, and must not look as if it were ours.
            os.ftruncate(fd, len(_DIRTY))
            _wait_until_unused(FIRST_UID + number)
            os.ftruncate(fd, 0)
        os.pwrite(fd, _DIRTY, 0)
        stack.callback(os.ftruncate, fd, 0)
        return Slot(FIRST_UID + number, fd)
    raise ConfinementUnavailable(
        "slots", f"all {SLOTS} user ids for confined work are taken", "run fewer commands at once"
    )


def places_in_use(*, other_than: Slot) -> set[Path]:
    """Return what other running commands may write."""
    mine = f"{other_than.uid - FIRST_UID}.lock"
    places: set[Path] = set()
    with os.scandir(_folder()) as locks:
        for lock in locks:
            if lock.name != mine and lock.stat().st_size:
                places |= _places_noted(lock.path)
    return places


def _places_noted(lock: str) -> set[Path]:
    fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return {Path(os.fsdecode(name)) for name in Path(lock).read_bytes().split(b"\0")[1:]}
    finally:
        os.close(fd)
    return set()


def _folder() -> str:
    folder = f"{runtime_dir()}/slots"
    if not os.path.isdir(folder):  # noqa: PTH112 - on every start
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)  # noqa: PTH102
    return folder


@cache
def _usable() -> tuple[int, ...]:
    known = {entry.pw_uid for entry in pwd.getpwall()}
    return tuple(number for number in range(SLOTS) if FIRST_UID + number not in known)


def _wait_until_unused(uid: int) -> None:
    """End whatever still runs under a user id whose lock nobody else holds.

    A coordinator that was killed while a boundary was being built leaves bubblewrap waiting for it. That
    process never got to run the command, but nothing else would ever end it.
    """
    until = time.monotonic() + _LEFTOVER_WAIT_S
    while leftovers := _processes_of(uid):
        if time.monotonic() > until:
            raise ConfinementUnavailable(
                "leftover-processes",
                f"processes of an earlier command still run as uid {uid}, and do not end",
                f"see what holds them: ps -U {uid}",
            )
        for pid in leftovers:
            _kill(pid, uid)
        time.sleep(0.01)


def _kill(pid: int, uid: int) -> None:
    """Kill a process that still is one of the user's; its number may belong to somebody else by now."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if pid in _processes_of(uid, only=pid):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def _processes_of(uid: int, *, only: int | None = None) -> list[int]:
    entries = Path("/proc").iterdir() if only is None else [Path("/proc") / str(only)]
    found = []
    for entry in entries:
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "status").read_text()
        except OSError:
            continue
        line = next((text for text in status.splitlines() if text.startswith("Uid:")), "")
        if str(uid) in line.split() and "\nState:\tZ" not in status:
            found.append(int(entry.name))
    return found
