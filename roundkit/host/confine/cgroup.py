"""Control groups: limits and counters for a whole run, version 1 or 2, where they can be written."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from roundkit.host.confine.hierarchies import Hierarchy, hierarchies
from roundkit.host.confine.types import Limits

_serial = count()
_REMOVE_WITHIN_S = 5.0
_PREFIX = "roundkit-"
_KERNEL_FILE_BYTES = 1 << 16
_THIS_THREAD = b"0"


class Cgroup:
    """The groups of one run, below the coordinator's own.

    Args:
        limits: What the run may use.
        peak_memory: Whether its peak is to be read, though nothing limits its memory. It costs some
            milliseconds, so nobody pays for it unasked.

    Attributes:
        enforced: Limit name → mechanism, e.g. ``{"memory": "cgroup-v1"}``.
    """

    def __init__(self, limits: Limits, *, peak_memory: bool = False) -> None:
        self.enforced: dict[str, str] = {}
        self._dirs: dict[str, tuple[int, str]] = {}
        self._made: dict[str, Hierarchy] = {}
        self._pids_max: int | None = None
        self._cpu_fd: int | None = None
        self._unified: str | None = None
        self._name = f"{_PREFIX}{os.getpid()}-{next(_serial)}"
        wanted = peak_memory or limits.memory_bytes is not None
        if wanted and self._open("memory") and limits.memory_bytes is not None:
            self._limit_memory(limits.memory_bytes)
        if limits.pids is not None and self._open("pids"):
            self._limit_pids(limits.pids)
        if self._open("cpu"):
            self.enforced["cpu"] = self._by("cpu")

    def _open(self, controller: str) -> bool:
        for hierarchy in hierarchies().get(controller, ()):
            path = f"{hierarchy.base}/{self._name}"
            # A process is in one group of version 2, so one folder serves every controller there.
            if hierarchy.version == 2 and self._unified not in (None, path):
                continue
            if path not in self._made:
                try:
                    os.mkdir(path)  # noqa: PTH102 - on every start, as what follows
                except OSError:
                    continue
                self._made[path] = hierarchy
            if self._is_there(controller, f"{path}/{_PROOF[controller, hierarchy.version]}"):
                self._dirs[controller] = (hierarchy.version, path)
                if hierarchy.version == 2:
                    self._unified = path
                return True
            if path != self._unified:
                os.rmdir(path)  # noqa: PTH106
                del self._made[path]
        return False

    def _is_there(self, controller: str, proof: str) -> bool:
        if controller != "cpu":
            return os.path.exists(proof)  # noqa: PTH110
        # Kept open: it is read while a command waits at its gate, and again while its caller waits.
        with contextlib.suppress(OSError):
            self._cpu_fd = os.open(proof, os.O_RDONLY | os.O_CLOEXEC)
        return self._cpu_fd is not None

    def _by(self, controller: str) -> str:
        return f"cgroup-v{self._dirs[controller][0]}"

    def _write(self, controller: str, name: str, value: object) -> bool:
        try:
            _write_now(f"{self._dirs[controller][1]}/{name}", str(value).encode())
        except OSError:
            return False
        return True

    def _read(self, controller: str, name: str) -> str:
        if controller not in self._dirs:
            return ""
        try:
            return _read_now(f"{self._dirs[controller][1]}/{name}")
        except OSError:
            return ""

    def _limit_memory(self, limit_bytes: int) -> None:
        version = self._dirs["memory"][0]
        if version == 1:
            held = self._write("memory", "memory.limit_in_bytes", limit_bytes)
            # Only where the kernel accounts for swap; without it memory alone is the limit.
            self._write("memory", "memory.memsw.limit_in_bytes", limit_bytes)
        else:
            held = self._write("memory", "memory.max", limit_bytes)
            self._write("memory", "memory.swap.max", 0)
        if held:
            self.enforced["memory"] = self._by("memory")

    def _limit_pids(self, limit: int) -> None:
        # Two more than promised: bubblewrap and the init of the process namespace count too. And one more
        # until this thread, which is inside while it starts bubblewrap, has left.
        if self._write("pids", "pids.max", limit + 3):
            self.enforced["pids"] = self._by("pids")
            self._pids_max = limit + 2

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Have what this thread starts meanwhile be born in the groups, where version 1 allows it.

        A thread may move itself at once. Moving another process waits for every processor to pass a quiet
        state, milliseconds on a busy machine, and nobody can fork until then.
        """
        with contextlib.ExitStack() as back:
            for path, hierarchy in self._made.items():
                if hierarchy.version == 1 and hierarchy.own is not None:
                    with contextlib.suppress(OSError):
                        # The way back is opened first: who cannot leave does not enter.
                        home = os.open(hierarchy.own / "tasks", os.O_WRONLY | os.O_CLOEXEC)
                        back.callback(os.close, home)
                        _write_now(f"{path}/tasks", _THIS_THREAD)
                        back.callback(os.write, home, _THIS_THREAD)
            yield
        if self._pids_max is not None:
            self._write("pids", "pids.max", self._pids_max)

    def add(self, *pids: int) -> None:
        """Move processes into the groups.

        Raises:
            OSError: The kernel refuses; nothing may then run.
        """
        for path in self._made:
            for pid in pids:
                _write_now(f"{path}/cgroup.procs", str(pid).encode())

    def holds(self, pid: int) -> bool:
        """Say whether a process is in every one of the groups."""
        lines = _read_now(f"/proc/{pid}/cgroup").splitlines()
        return sum(line.endswith("/" + self._name) for line in lines) == len(self._made)

    def cpu_s(self) -> float | None:
        """Return the CPU seconds used so far, None if no hierarchy counts them."""
        if self._cpu_fd is None:
            return None
        try:
            text = os.pread(self._cpu_fd, _KERNEL_FILE_BYTES, 0).decode()
        except OSError:
            return None
        if self._dirs["cpu"][0] == 1:
            return int(text) / 1e9 if text else None
        return _scaled(r"usage_usec (\d+)", text, 1e-6)

    def peak_memory_bytes(self) -> int | None:
        """Return the highest memory use so far, None if no hierarchy counts it."""
        text = self._read("memory", "memory.max_usage_in_bytes") or self._read("memory", "memory.peak")
        return int(text) if text.strip() else None

    def memory_exceeded(self) -> bool:
        """Say whether the kernel has killed a process of the run over its memory limit."""
        text = self._read("memory", "memory.oom_control") or self._read("memory", "memory.events")
        return bool(_scaled(r"oom_kill (\d+)", text, 1))

    def pids_exceeded(self) -> bool:
        """Say whether the run was refused a new process over its limit."""
        return bool(_scaled(r"max (\d+)", self._read("pids", "pids.events"), 1))

    def close(self) -> None:
        """Remove the groups; the last process has left them by then."""
        if self._cpu_fd is not None:
            os.close(self._cpu_fd)
            self._cpu_fd = None
        until = time.monotonic() + _REMOVE_WITHIN_S
        for path in self._made:
            while True:
                try:
                    os.rmdir(path)  # noqa: PTH106
                except FileNotFoundError:
                    break
                except OSError:
                    if time.monotonic() > until:
                        break
                    time.sleep(0.0003)
                else:
                    break
        self._made.clear()


def _write_now(path: str, content: bytes) -> None:
    """Write to a file of the kernel's in one call; on every start, so without a stream around it."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, content)
    finally:
        os.close(fd)


def _read_now(path: str) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _KERNEL_FILE_BYTES).decode()
    finally:
        os.close(fd)


_PROOF = {
    ("memory", 1): "memory.limit_in_bytes",
    ("memory", 2): "memory.max",
    ("pids", 1): "pids.max",
    ("pids", 2): "pids.max",
    ("cpu", 1): "cpuacct.usage",
    ("cpu", 2): "cpu.stat",
}


def _scaled(pattern: str, text: str, factor: float) -> float | None:
    match = re.search(pattern, text)
    return int(match[1]) * factor if match else None


def sweep() -> list[Path]:
    """End what coordinators that are gone left running, and remove their groups; return what was removed.

    A command dies with its coordinator by itself; this makes sure before somebody relies on it.
    """
    removed = []
    for base in {hierarchy.base for places in hierarchies().values() for hierarchy in places}:
        for path in base.glob(f"{_PREFIX}*"):
            pid = path.name.removeprefix(_PREFIX).split("-")[0]
            if pid.isdigit() and not Path("/proc", pid).exists() and _remove_group(path):
                removed.append(path)
    return removed


def _remove_group(path: Path) -> bool:
    until = time.monotonic() + _REMOVE_WITHIN_S
    while True:
        try:
            path.rmdir()
        except FileNotFoundError:
            return False
        except OSError:
            with contextlib.suppress(OSError):
                for pid in map(int, (path / "cgroup.procs").read_text().split()):
                    if pid > 0:  # 0 stands for a process of another namespace, and would mean our own group
                        os.kill(pid, signal.SIGKILL)
            if time.monotonic() > until:
                return False
            time.sleep(0.001)
        else:
            return True
