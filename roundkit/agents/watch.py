"""Following an agent while it runs: its output goes to the log and to its meter, and it can be stopped."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from roundkit.agents.agent_log import BoundedLog, Lines
from roundkit.agents.contract import Meter, StateReader
from roundkit.models.agent_run import AgentEnd

Halt = Callable[[], AgentEnd | None]
"""Asked every second whether somebody wants the agent to end, and why."""

_CHUNK_BYTES = 1 << 16
_LOOK_EVERY_S = 1.0


class Watch:
    """The two threads beside one run: one reads its output, one looks at its files and at the owner.

    Args:
        meter: Judges the output.
        lines: Cuts and cleans it.
        log: Keeps it.
        state: Reads the agent's files.
        halt: Asks the owner.
        most_bytes: Output after which the agent is stopped.
    """

    def __init__(
        self, meter: Meter, lines: Lines, log: BoundedLog, state: StateReader, halt: Halt, most_bytes: int
    ) -> None:
        self._meter = meter
        self._lines = lines
        self._log = log
        self._state = state
        self._halt = halt
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._failures: list[BaseException] = []
        self.stopped: AgentEnd | None = None
        self.stop_read, self._stop_write = os.pipe2(os.O_CLOEXEC)

    @contextmanager
    def following(self, output_read: int) -> Iterator[None]:
        """Follow a run for the duration of a block, at whose end nothing of the agent is left.

        Args:
            output_read: Read end of its standard output; closed here.
        """
        reader = threading.Thread(target=self._guarded, args=(self._read, output_read), name="agent-output")
        looker = threading.Thread(target=self._guarded, args=(self._look,), name="agent-watch")
        reader.start()
        looker.start()
        try:
            yield
        finally:
            self._over.set()
            looker.join()
            reader.join()
            os.close(self.stop_read)
            os.close(self._stop_write)
        if self._failures:
            raise self._failures[0]

    def _guarded(self, work: Callable[..., None], *arguments: int) -> None:
        """Run a thread's work. An agent that nobody follows any more is stopped."""
        try:
            work(*arguments)
        except BaseException as error:
            self._failures.append(error)
            self._stop("killed")

    def _read(self, output_read: int) -> None:
        try:
            while chunk := os.read(output_read, _CHUNK_BYTES):
                self._take(self._lines.feed(chunk))
                if self._log.total_bytes > self._most_bytes:
                    self._stop("killed")
            self._take(self._lines.end())
        finally:
            os.close(output_read)

    def _take(self, lines: Iterator[bytes]) -> None:
        for line in lines:
            self._log.add(line)
            with self._lock:
                reason = self._meter.read(line.decode("utf-8", "replace").rstrip("\n"))
            if reason is not None:
                self._stop(reason)

    def _look(self) -> None:
        while not self._over.wait(_LOOK_EVERY_S):
            with self._lock:
                reason = self._meter.poll(self._state)
            reason = reason or self._halt()
            if reason is not None:
                self._stop(reason)
                return

    def _stop(self, reason: AgentEnd) -> None:
        """End the run. The first reason is the one that counts."""
        if self.stopped is None:
            self.stopped = reason
            with suppress(OSError):
                os.write(self._stop_write, b"x")


def feed(content: bytes, input_write: int) -> None:
    """Write a whole standard input and close it; an agent that does not want it is no error."""
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(input_write, view) :]
    except BrokenPipeError:
        pass
    finally:
        os.close(input_write)
