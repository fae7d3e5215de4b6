"""Starting bubblewrap with the right descriptors, and following it to the end."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from roundkit.core.clock import Deadline
from roundkit.core.errors import refuse
from roundkit.host.confine.bwrap import ARGS_FD, SECCOMP_FD, STATUS_FD, Arguments
from roundkit.host.confine.cgroup import Cgroup
from roundkit.host.confine.gate import GATE_FD, Gate
from roundkit.host.confine.identity import Identity
from roundkit.host.confine.output import BoundedCapture
from roundkit.host.confine.seccomp import filter_program
from roundkit.host.confine.spawn import memory_file, spawn
from roundkit.host.confine.supervise import Course, Supervisor
from roundkit.host.confine.types import CpuSet, Limits, MountRecord
from roundkit.host.confine.unavailable import ConfinementUnavailable
from roundkit.host.confine.watch import DiskWatch


@dataclass
class Streams:
    """The caller's ends of standard input and output, None where it gave none."""

    stdin: int | None
    stdout: int | None

    def close(self) -> None:
        """Close what was taken over, once."""
        for fd in {self.stdin, self.stdout} - {None}:
            assert fd is not None
            os.close(fd)
        self.stdin = self.stdout = None


def take_over(stdin: int | None, stdout: int | None, stack: ExitStack) -> Streams:
    """Take over the caller's descriptors until they are passed on or ``stack`` closes.

    Raises:
        Refused: One of them is no pipe (``stream-not-a-pipe``).
    """
    taken = Streams(stdin, stdout)
    stack.callback(taken.close)
    for fd in (stdin, stdout):
        # A file could be reopened by the command through /proc and read back or cut off.
        if fd is not None and not _is_pipe(os.fstat(fd).st_mode):
            raise refuse("stream-not-a-pipe", f"descriptor {fd} is neither a pipe nor a socket")
    return taken


def _is_pipe(mode: int) -> bool:
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@dataclass(frozen=True)
class Ending:
    """What is left of a command: its course and the captured streams (``out`` only if it was captured)."""

    course: Course
    out: BoundedCapture | None
    err: BoundedCapture
    mounts: tuple[MountRecord, ...]


@dataclass
class Launch:
    """Everything about one start that does not depend on where bubblewrap finds the granted places.

    Attributes:
        identity: Who the command runs as.
        gated: The command behind its gate.
        streams: What the caller gave for standard input and output.
        cpus: CPUs to bind it to.
        limits: What it may use.
        deadline: When it ends.
        cgroup: Groups to put it into.
        at_gate: Called with the process id of the command while it waits at its gate.
        stop: Descriptor that ends the command as soon as it can be read.
    """

    identity: Identity
    gated: Sequence[str]
    streams: Streams
    cpus: CpuSet | None
    limits: Limits
    deadline: Deadline
    cgroup: Cgroup
    at_gate: Callable[[int], None]
    stop: int | None = None
    _supervisor: Supervisor | None = None

    def abandon(self) -> None:
        """End the command as soon as possible, from another thread."""
        self.deadline = Deadline(0.0)
        if self._supervisor is not None:
            self._supervisor.abandon()

    def run(self, arguments: Arguments, disk: DiskWatch) -> Ending:
        """Start bubblewrap and watch it to the end."""
        with ExitStack() as stack, ExitStack() as theirs:
            gate = Gate()
            stack.callback(gate.close)
            status_fd, status_end = _pipe(stack, theirs)
            err, err_end = self._capture(stack, theirs)
            out: BoundedCapture | None = None
            out_end = self.streams.stdout
            if out_end is None:
                out, out_end = self._capture(stack, theirs)
            in_end = self.streams.stdin
            if in_end is None:
                in_end = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
                theirs.callback(os.close, in_end)
            fds = {
                0: in_end,
                1: out_end,
                2: err_end,
                GATE_FD: gate.theirs.fileno(),
                ARGS_FD: memory_file("args", arguments.encoded(), theirs),
                STATUS_FD: status_end,
                SECCOMP_FD: memory_file("filter", filter_program(pin_cpus=self.cpus is not None), theirs),
                **arguments.fds,
            }
            try:
                pid = spawn([*self.identity.prefix, "--args", str(ARGS_FD), "--", *self.gated], fds)
            except OSError as error:
                raise ConfinementUnavailable(
                    "spawn", f"{self.identity.prefix[0]}: {error.strerror}"
                ) from None
            self._supervisor = Supervisor(
                pid=pid,
                gate=gate,
                status_fd=status_fd,
                captures=[err] if out is None else [out, err],
                cgroup=self.cgroup,
                disk=disk,
                limits=self.limits,
                deadline=self.deadline,
                cpus=self.cpus,
                at_gate=self.at_gate,
                stop=self.stop,
            )
            gate.theirs.close()
            theirs.close()
            self.streams.close()
            return Ending(self._supervisor.watch(), out, err, arguments.mounts)

    def _capture(self, stack: ExitStack, theirs: ExitStack) -> tuple[BoundedCapture, int]:
        fd, end = _pipe(stack, theirs)
        os.set_blocking(fd, False)
        return BoundedCapture(fd, self.limits.output_bytes), end


def _pipe(stack: ExitStack, theirs: ExitStack) -> tuple[int, int]:
    ours, end = os.pipe2(os.O_CLOEXEC)
    stack.callback(os.close, ours)
    theirs.callback(os.close, end)
    return ours, end
