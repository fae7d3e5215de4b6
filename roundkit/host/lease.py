"""Host-wide leases: on one host a device has one holder at a time, whatever round, user or program.

A lease is a kernel lock (``flock``) on one file per device, so it ends with the process that holds it,
however that process ends. The file's content says who holds it, for people to read; only the lock counts.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import format_utc, now_utc
from roundkit.core.errors import refuse
from roundkit.host.lock_file import is_file_at, open_lock, take_lock
from roundkit.host.turns import Turn, somebody_is_first

LEASE_ROOT_VARIABLE = "ROUNDKIT_LEASE_ROOT"

_HOST_ROOT = Path("/run/lock/roundkit")
# Not the user's TMPDIR: two users with different ones must still find the same leases.
_SHARED_ROOT = Path("/tmp/roundkit-leases")  # noqa: S108
_SUFFIX = ".lease"
_NAME_LIMIT = 80
_INFO_LIMIT_BYTES = 4096
_NS_IN_S = 1e9
_MOST_AHEAD_S = 1.0


@dataclass(frozen=True)
class LeaseHolder:
    """Who holds a device; fields other than ``device`` are null where the holder's note is unreadable.

    Attributes:
        device: The device's name, e.g. ``cpu:3``.
        pid: Process id of the holder.
        process_started_s: When that process started, in seconds since the epoch.
        round_id: The round that the lease is for.
        purpose: What the lease is for, in words.
        acquired_utc: When it was acquired, RFC 3339.
    """

    device: str
    pid: int | None
    process_started_s: float | None
    round_id: str | None
    purpose: str | None
    acquired_utc: str | None


class HeldLease:
    """A set of devices that this process holds until :meth:`release` or its own end.

    Attributes:
        devices: The devices' names, sorted.
        acquired_utc: When the whole set was held.
        holder_pid: This process.
    """

    def __init__(self, root: Path, locks: dict[str, int], acquired_utc: datetime) -> None:
        self.devices = tuple(sorted(locks))
        self.acquired_utc = acquired_utc
        self.holder_pid = os.getpid()
        self._root = root
        self._locks = locks

    def lost(self) -> list[str]:
        """Return the devices whose lock file was removed or replaced, so that the lock protects nothing."""
        return [
            device
            for device, lock in self._locks.items()
            if not is_file_at(lock, lease_file(self._root, device))
        ]

    def release(self) -> None:
        """Let go of every device, and leave when; a second call does nothing."""
        released_ns = time.time_ns()
        while self._locks:
            _, lock = self._locks.popitem()
            with contextlib.suppress(OSError):
                os.ftruncate(lock, 0)
                os.utime(lock, ns=(released_ns, released_ns))
            os.close(lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def default_lease_root() -> Path:
    """Return the folder in which every user of this host keeps leases, and make it.

    ``ROUNDKIT_LEASE_ROOT`` decides where it is set; else the system's lock folder; else, where nobody may
    write there, a shared folder below the one for temporary files.

    Raises:
        Refused: ``lease-root``: it cannot be made.
    """
    named = os.environ.get(LEASE_ROOT_VARIABLE)
    if named:
        return _made(Path(named))
    if os.access(_HOST_ROOT if _HOST_ROOT.is_dir() else _HOST_ROOT.parent, os.W_OK | os.X_OK):
        return _made(_HOST_ROOT)
    return _made(_SHARED_ROOT)


def lease_file(root: Path, device: str) -> Path:
    """Return the lock file of a device."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", device)[:_NAME_LIMIT]
    return root / f"{plain}-{digest_bytes(device.encode())[:12]}{_SUFFIX}"


def wait_in_line(devices: Sequence[str], *, root: Path) -> Turn:
    """Stand in line for devices that somebody holds; the turn goes to :func:`acquire_set` until it succeeds.

    Raises:
        OSError: the lease folder cannot be written to.
    """
    return Turn(_lines(root, devices))


def is_next(devices: Sequence[str], *, root: Path, turn: Turn | None = None) -> bool:
    """Say whether nobody has waited longer for any of the devices."""
    return not somebody_is_first(_lines(root, devices), turn)


def acquire_set(
    devices: Sequence[str],
    *,
    root: Path,
    purpose: str,
    round_id: str | None = None,
    turn: Turn | None = None,
) -> HeldLease | None:
    """Take all of the devices at once, or none; never waits for a holder.

    Where the clock was set back a little since the last holder let go, it is waited for, at most a second: so
    that a lease begins after the one before it ended by the clock that both are recorded by.

    Args:
        devices: Names such as ``cpu:3``; naming one twice is the same as once.
        root: The lease folder.
        purpose: What for, in words, for people to read.
        round_id: The round that the lease is for.
        turn: The place in line of one who has waited; the line is left with the lease.

    Returns:
        The lease, or None where somebody holds one of the devices, or has waited longer for it.

    Raises:
        Refused: ``lease-file``: a lock file cannot be opened or is no regular file.
    """
    if not is_next(devices, root=root, turn=turn):
        return None
    locks: dict[str, int] = {}
    try:
        # In one order for everybody, so that two overlapping sets cannot refuse each other for ever.
        for device in sorted(set(devices)):
            lock = take_lock(lease_file(root, device))
            if lock is None:
                _close_all(locks.values())
                return None
            locks[device] = lock
        _wait_for_clock(locks.values())
        acquired = now_utc()
        for device, lock in locks.items():
            _leave_note(lock, device, round_id, purpose, acquired)
    except BaseException:
        _close_all(locks.values())
        raise
    if turn is not None:
        turn.leave()
    return HeldLease(root, locks, acquired)


def _lines(root: Path, devices: Sequence[str]) -> list[Path]:
    """Return what the names of the files of each device's line begin with."""
    return [lease_file(root, device).with_suffix("") for device in sorted(set(devices))]


def holders(root: Path) -> list[LeaseHolder]:
    """List who holds devices now, by trying every lock; a dead holder's note is not believed.

    Raises:
        Refused: ``lease-file``: a lock file cannot be opened.
    """
    found = []
    for path in sorted(root.glob(f"*{_SUFFIX}")):
        lock = open_lock(path, create=False)
        if lock is None:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            found.append(_read_note(lock, path))
        finally:
            os.close(lock)
    return found


def _made(root: Path) -> Path:
    try:
        root.mkdir(parents=True, exist_ok=True)
        if root.stat().st_uid == os.geteuid():
            root.chmod(0o1777)  # every user's rounds lease the same devices
    except OSError as error:
        raise refuse(
            "lease-root",
            f"the lease folder {root} cannot be made: {error.strerror}",
            place=LEASE_ROOT_VARIABLE,
            remedy="set it to a folder that every user of this host may write to",
        ) from error
    return root


def _close_all(locks: Iterable[int]) -> None:
    for lock in locks:
        os.close(lock)


def _wait_for_clock(locks: Iterable[int]) -> None:
    ahead_s = (max((os.fstat(lock).st_mtime_ns for lock in locks), default=0) - time.time_ns()) / _NS_IN_S
    if 0 < ahead_s <= _MOST_AHEAD_S:
        time.sleep(ahead_s)


def _leave_note(lock: int, device: str, round_id: str | None, purpose: str, acquired: datetime) -> None:
    holder = LeaseHolder(
        device=device,
        pid=os.getpid(),
        process_started_s=psutil.Process().create_time(),
        round_id=round_id,
        purpose=purpose,
        acquired_utc=format_utc(acquired),
    )
    # A note that cannot be written hides who holds the device; it does not weaken the lock.
    with contextlib.suppress(OSError):
        os.ftruncate(lock, 0)
        os.pwrite(lock, json.dumps(asdict(holder)).encode(), 0)


def _read_note(lock: int, path: Path) -> LeaseHolder:
    try:
        return LeaseHolder(**json.loads(os.pread(lock, _INFO_LIMIT_BYTES, 0)))
    except (ValueError, TypeError):
        return LeaseHolder(path.name.removesuffix(_SUFFIX), None, None, None, None, None)
