"""Watching over one confined command from its start to the death of its last process."""

from __future__ import annotations

import json
import os
import resource
import select
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from roundkit.core.clock import Deadline
from roundkit.host.confine.cgroup import Cgroup
from roundkit.host.confine.course import Course
from roundkit.host.confine.gate import MISSING, READY, Gate
from roundkit.host.confine.output import BoundedCapture
from roundkit.host.confine.process import await_death, kill, tells_wait_status, tree_cpu_s, wait_status
from roundkit.host.confine.types import CpuSet, EndReason, Limits
from roundkit.host.confine.unavailable import ConfinementUnavailable
from roundkit.host.confine.watch import DiskWatch

_SETUP_WITHIN_S = 60.0
_DEATH_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.1
_STATUS_BYTES = 4096


@dataclass
class Supervisor:
    """One spawned bubblewrap and everything that watches it.

    Attributes:
        pid: Process id of bubblewrap.
        prepare: What is left to do while bubblewrap starts; the boundary is not built before it is done.
        gate: The start gate.
        status_fd: Read end of bubblewrap's status pipe.
        captures: Captured streams.
        cgroup: Groups of the run.
        disk: Watch over the writable places.
        limits: Limits of the run.
        deadline: When the run ends.
        cpus: CPUs to bind the command to.
        at_gate: Called with the process id of the command while it waits at its gate.
        stop: Descriptor that ends the run as soon as it can be read; None where nobody will ask.
    """

    pid: int
    prepare: Callable[[], None]
    gate: Gate
    status_fd: int
    captures: Sequence[BoundedCapture]
    cgroup: Cgroup
    disk: DiskWatch
    limits: Limits
    deadline: Deadline
    cpus: CpuSet | None
    at_gate: Callable[[int], None]
    stop: int | None = None
    course: Course = field(default_factory=Course)

    def __post_init__(self) -> None:
        # Whatever has been read ahead must not be waited for again: every reader returns at once.
        os.set_blocking(self.status_fd, False)
        self._pidfd = os.pidfd_open(self.pid)
        self._init_pid: int | None = None
        self._init_pidfd: int | None = None
        self._command_pidfd: int | None = None
        self._status_text = b""
        self._gate_s = 0.0
        self._cpu_before_s = 0.0
        self._next_look_s = 0.0
        self._over = False
        self._in_groups = False
        self._poller = select.poll()
        self._readers: dict[int, Callable[[], bool]] = {
            self.gate.fd: self._on_gate,
            self.status_fd: self._on_status,
            self._pidfd: self._on_end,
            **{capture.fd: capture.pump for capture in self.captures},
        }
        if self.stop is not None:
            self._readers[self.stop] = self._on_stop

    def watch(self) -> Course:
        """Follow the command to its end, and return once no process of it is left.

        Raises:
            ConfinementUnavailable: A limit or the CPU binding cannot be applied, or a process does not die.
            Refused: What ``prepare`` raises.
        """
        try:
            self.prepare()
            # Whatever is started by a process that was born in the groups is born there, too. Moving one
            # can take milliseconds, so it goes on while the boundary is being built.
            with suppress(OSError):
                self._in_groups = self.cgroup.holds(self.pid)
                if not self._in_groups:
                    self.cgroup.add(self.pid)
            self.disk.begin()
            self._loop()
        finally:
            self._end_everything()
        return self.course

    def abandon(self) -> None:
        """End the command as soon as possible, from another thread."""
        self.deadline = Deadline(0.0)
        kill(self._pidfd)

    def _loop(self) -> None:
        for fd in self._readers:
            self._poller.register(fd, select.POLLIN)
        setup = Deadline.after(_SETUP_WITHIN_S)
        while not self._over:
            self._check(setup)
            if self._over:
                return
            for fd, _ in self._poller.poll(self._pause_ms(setup)):
                if not self._readers[fd]():
                    self._poller.unregister(fd)

    def _pause_ms(self, setup: Deadline) -> float:
        until = self.deadline if self.course.started else self.deadline.earlier(setup)
        pause_s = until.remaining_s()
        limits = self.limits
        looks = self.disk.wanted or bool(self.cgroup.enforced.keys() & {"memory", "pids"}) or limits.cpu_s
        if self.course.started and looks:
            pause_s = min(pause_s, _LOOK_EVERY_S)
        return pause_s * 1000 + 1

    def _check(self, setup: Deadline) -> None:
        if self.deadline.expired():
            self._stop("deadline")
        elif not self.course.started:
            if setup.expired():
                self._stop("setup-failed", f"the boundary did not stand within {_SETUP_WITHIN_S:.0f} s")
        elif sum(capture.total_bytes for capture in self.captures) > self.limits.output_kill_bytes:
            self._stop("output-limit", f"more than {self.limits.output_kill_bytes} bytes of output")
        elif time.monotonic() >= self._next_look_s:
            self._next_look_s = time.monotonic() + _LOOK_EVERY_S
            self._check_usage(self._init_pid)

    def _check_usage(self, init_pid: int | None) -> None:
        cpu_s = self._cpu_s() if self.limits.cpu_s is not None else None
        if self.cgroup.memory_exceeded():
            self._stop("memory", "the kernel killed a process over the memory limit")
        elif self.cgroup.pids_exceeded():
            self._stop("pids", f"more than {self.limits.pids} processes were wanted")
        elif cpu_s is not None and self.limits.cpu_s is not None and cpu_s > self.limits.cpu_s:
            self._stop("cpu", f"more than {self.limits.cpu_s} CPU seconds")
        elif grown := self.disk.exceeded(init_pid):
            self._stop("disk-limit", grown)

    def _cpu_s(self) -> float | None:
        """Return what the command used since the gate, without the building of the boundary."""
        now_s = self.cgroup.cpu_s()
        return None if now_s is None else max(0.0, now_s - self._cpu_before_s)

    def _stop(self, reason: EndReason, detail: str = "") -> None:
        self.course.reason, self.course.detail = reason, detail
        self._over = True

    def _on_stop(self) -> bool:
        self._stop("stopped")
        return False

    def _on_status(self) -> bool:
        """Wait for the init's number, before it can belong to another process; the rest can wait."""
        self._read_status()
        return self._init_pid is None

    def _read_status(self) -> None:
        """Take in what bubblewrap has told so far."""
        try:
            while chunk := os.read(self.status_fd, _STATUS_BYTES):
                self._status_text += chunk
        except BlockingIOError:
            pass
        *lines, self._status_text = self._status_text.split(b"\n")
        for line in filter(None, lines):
            told = json.loads(line)
            if self._init_pid is None and "child-pid" in told:
                self._init_pid = int(told["child-pid"])
                # Gone already when the boundary could not be built; then the gate is never reached.
                with suppress(ProcessLookupError):
                    self._init_pidfd = os.pidfd_open(self._init_pid)
            if "exit-code" in told:
                self.course.status = int(told["exit-code"])

    def _on_end(self) -> bool:
        """Take the end of bubblewrap, or of the command, for the end of all."""
        self._over = True
        return False

    def _on_gate(self) -> bool:
        word, sender = self.gate.receive()
        if word not in (READY, MISSING) or sender is None:
            return False
        # Written before the gate can speak, so it is there; it may just not have been read yet.
        if self._init_pid is None:
            self._read_status()
        if self._init_pidfd is None:
            return False
        self.course.missing = word == MISSING
        try:
            self._command_pidfd = os.pidfd_open(sender)
        except ProcessLookupError:
            return False
        self._bind(sender)
        self.at_gate(sender)
        if self.deadline.expired():
            self._stop("deadline")
            return False
        self._cpu_before_s = self.cgroup.cpu_s() or 0.0
        self._gate_s = time.monotonic()
        # Nothing can have grown yet, and a look now would hold up the command's own start.
        self._next_look_s = self._gate_s + _LOOK_EVERY_S
        # A gate that died meanwhile did not start anything.
        with suppress(BrokenPipeError):
            self.gate.go()
            self.course.started = True
        # Its end comes to light before bubblewrap has told of it, where the kernel tells its status as well.
        if tells_wait_status():
            self._readers[self._command_pidfd] = self._on_end
            self._poller.register(self._command_pidfd, select.POLLIN)
        return False

    def _bind(self, command_pid: int) -> None:
        """Put the waiting command under its limits."""
        assert self._init_pid is not None
        try:
            # The kernel may have been slower to move bubblewrap than bubblewrap to start its child.
            if not self._in_groups and not self.cgroup.holds(command_pid):
                self.cgroup.add(self._init_pid, command_pid)
        except OSError as error:
            raise ConfinementUnavailable("cgroup", f"the run cannot join its groups: {error}") from None
        # One byte, not none: it also keeps a handler that the host runs as root from being started. A
        # root without that capability keeps the gate's own setting.
        with suppress(PermissionError):
            resource.prlimit(command_pid, resource.RLIMIT_CORE, (1, 1))
        if self.cpus is not None:
            try:
                os.sched_setaffinity(command_pid, self.cpus)
            except OSError as error:
                raise ConfinementUnavailable(
                    "affinity", f"the command cannot be bound to CPUs {sorted(self.cpus)}: {error}"
                ) from None

    def _end_everything(self) -> None:
        self._read_status()
        self._read_before_death()
        try:
            self._end_processes()
        finally:
            for pidfd in (self._init_pidfd, self._pidfd, self._command_pidfd):
                if pidfd is not None:
                    os.close(pidfd)
        for capture in self.captures:
            capture.drain(self.limits.output_kill_bytes)
        self._read_after_death()

    def _read_before_death(self) -> None:
        """Take the time, and what only living processes tell."""
        if not self.course.started:
            return
        self.course.wall_s = time.monotonic() - self._gate_s
        if "cpu" not in self.cgroup.enforced and self._init_pid is not None:
            self.course.cpu_s, self.course.cpu_source = tree_cpu_s(self._init_pid), "procfs"

    def _end_processes(self) -> None:
        """End what still runs, and return once nothing does.

        Raises:
            ConfinementUnavailable: ``processes-remain``: one of them does not die.
        """
        # The death of a namespace's init takes every process in it along, and is reported after them.
        for pidfd in (self._init_pidfd, self._pidfd):
            if pidfd is not None:
                kill(pidfd)
        self.gate.close()
        if self._init_pidfd is not None and not await_death(self._init_pidfd, _DEATH_WITHIN_S):
            raise ConfinementUnavailable(
                "processes-remain",
                f"a process of the command did not die within {_DEATH_WITHIN_S:.0f} s of SIGKILL",
                "a device or network file system hangs; the machine needs attention",
            )
        os.waitpid(self.pid, 0)
        if self._command_pidfd is not None:
            self.course.command_status = wait_status(self._command_pidfd)

    def _read_after_death(self) -> None:
        """Take the counters at their last, and what they say of a limit that nobody had looked at yet."""
        if "cpu" in self.cgroup.enforced:
            self.course.cpu_s, self.course.cpu_source = self._cpu_s(), "cgroup"
        if self.course.started and self.course.reason is None:
            self._check_usage(None)
