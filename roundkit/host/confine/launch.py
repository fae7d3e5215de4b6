"""Starting bubblewrap with the right descriptors, and following it to the end."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from roundkit.core.clock import Deadline
from roundkit.core.errors import refuse
from roundkit.host.confine.bwrap import ARGS_FD, SECCOMP_FD, STATUS_FD, Arguments
from roundkit.host.confine.cgroup import Cgroup
from roundkit.host.confine.course import Course
from roundkit.host.confine.gate import GATE_FD, Gate
from roundkit.host.confine.identity import Identity
from roundkit.host.confine.output import BoundedCapture
from roundkit.host.confine.seccomp import filter_program
from roundkit.host.confine.spawn import memory_file, spawn
from roundkit.host.confine.supervise import Supervisor
from roundkit.host.confine.types import Boundary, CpuSet, Limits, MountRecord
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
    """What is left of a command: its course, its captured streams (``out`` if it was), and what held it."""

    course: Course
    out: BoundedCapture | None
    err: BoundedCapture
    boundary: Boundary


class _Words:
    """The pipe that bubblewrap reads its arguments from."""

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd

    def say(self, arguments: Arguments) -> None:
        """Write all of them; the end of the pipe is what bubblewrap waits for."""
        assert self._fd is not None
        waiting = memoryview(arguments.encoded())
        # One that has died already is found out about by whoever waits for it.
        with suppress(BrokenPipeError):
            while waiting:
                waiting = waiting[os.write(self._fd, waiting) :]
        self.close()

    def close(self) -> None:
        """Close the pipe, once."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


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
        recorded: Returns the record of the boundary that has these mounts.
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
    recorded: Callable[[tuple[MountRecord, ...]], Boundary]
    stop: int | None = None
    _supervisor: Supervisor | None = None

    def abandon(self) -> None:
        """End the command as soon as possible, from another thread."""
        self.deadline = Deadline(0.0)
        if self._supervisor is not None:
            self._supervisor.abandon()

    def run(
        self, fds: Mapping[int, int], describe: Callable[[], Arguments], disk: DiskWatch, made: ExitStack
    ) -> Ending:
        """Start bubblewrap and watch it to the end.

        bubblewrap reads its arguments from a pipe until its end, so what they say is put together, and
        what they rely on is prepared, while the program is being loaded. A coordinator that dies meanwhile
        leaves a boundary without any mount, in which there is not even a gate. The boundary is described
        for the record while it is being built, when nobody waits for that.

        Args:
            fds: What the arguments will name, by its number in bubblewrap.
            describe: Prepares the granted places and returns the arguments.
            disk: Watch over the writable places.
            made: Closes what bubblewrap alone reads, as soon as it is told of it.
        """
        with ExitStack() as stack, ExitStack() as theirs:
            gate = Gate()
            stack.callback(gate.close)
            status_fd, status_end = _pipe(stack, theirs)
            args_end, args_fd = os.pipe2(os.O_CLOEXEC)
            theirs.callback(os.close, args_end)
            words = _Words(args_fd)
            stack.callback(words.close)
            err, err_end = self._capture(stack, theirs)
            out: BoundedCapture | None = None
            out_end = self.streams.stdout
            if out_end is None:
                out, out_end = self._capture(stack, theirs)
            in_end = self.streams.stdin
            if in_end is None:
                in_end = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
                theirs.callback(os.close, in_end)
            passed = {
                0: in_end,
                1: out_end,
                2: err_end,
                GATE_FD: gate.theirs.fileno(),
                ARGS_FD: args_end,
                STATUS_FD: status_end,
                SECCOMP_FD: memory_file("filter", filter_program(pin_cpus=self.cpus is not None), theirs),
                **fds,
            }
            recorded: list[Boundary] = []

            def prepare() -> None:
                arguments = describe()
                words.say(arguments)
                recorded.append(self.recorded(arguments.mounts))
                made.close()

            try:
                with self.cgroup.entered():
                    pid = spawn([*self.identity.prefix, "--args", str(ARGS_FD), "--", *self.gated], passed)
            except OSError as error:
                raise ConfinementUnavailable(
                    "spawn", f"{self.identity.prefix[0]}: {error.strerror}"
                ) from None
            gate.theirs.close()
            theirs.close()
            self.streams.close()
            self._supervisor = Supervisor(
                pid=pid,
                prepare=prepare,
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
            course = self._supervisor.watch()
            return Ending(course, out, err, recorded[0])

    def _capture(self, stack: ExitStack, theirs: ExitStack) -> tuple[BoundedCapture, int]:
        fd, end = _pipe(stack, theirs)
        os.set_blocking(fd, False)
        return BoundedCapture(fd, self.limits.output_bytes), end


def _pipe(stack: ExitStack, theirs: ExitStack) -> tuple[int, int]:
    ours, end = os.pipe2(os.O_CLOEXEC)
    stack.callback(os.close, ours)
    theirs.callback(os.close, end)
    return ours, end
