"""The gater's calls of campaign commands: logged as they talk, and ended all at once when the gater ends."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from roundkit.core.errors import RoundkitError
from roundkit.host.confine import Mount
from roundkit.models.base import Record
from roundkit.models.wave_plan import WaveCommand
from roundkit.waves.command import STAGING, TREE, Call, CommandProblem, ask_command
from roundkit.waves.folder import CampaignFolder

DRAFTS = Path("/wave/drafts")
"""Where a command finds copies of drafts that it may only read."""

# One stream for the log: what a command says on either comes in the order in which it said it.
_MERGED = ("/bin/sh", "-c", 'exec "$@" 2>&1', "sh")
_CHUNK_BYTES = 65536
# The command did not end by itself or at a limit of its plan's.
_NOT_ITS_DOING = frozenset({"setup-failed", "stopped"})

R = TypeVar("R", bound=Record)


class CallBroke(RoundkitError):
    """A call ended through no doing of its command: there was no boundary, or the gater is ending."""


@dataclass(frozen=True)
class Called(Generic[R]):
    """What a call came to: an answer, or why there is none."""

    answer: R | None
    failure: str


@dataclass
class Calls:
    """Makes the calls of one gater, from any thread, and can end all that run.

    Attributes:
        campaign: The campaign.
    """

    campaign: CampaignFolder
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _running: set[int] = field(default_factory=set)
    _ending: bool = False

    def ask(
        self,
        name: str,
        command: WaveCommand,
        request: Record,
        answer: type[R],
        *,
        folder: Path,
        log: Path,
        staging: Path | None = None,
        readable: Sequence[Mount] = (),
    ) -> Called[R]:
        """Run a command to its end; it reads the tree and the tools, and writes its staging folder alone.

        Args:
            name: Which of the plan's commands.
            command: What to run.
            request: What it reads.
            answer: What it is to write.
            folder: Folder of this call alone, which is not there yet.
            log: File that its output is added to as it comes.
            staging: Folder that it may write besides its own.
            readable: What else it may read.

        Raises:
            CallBroke: it was ended from here, or the boundary could not be set up.
            ConfinementUnavailable: the host cannot confine a command.
            OSError: a folder or the log cannot be written.
        """
        limits = self.campaign.plan.plan.gate.limits
        call = Call(
            name,
            command.model_copy(update={"argv": (*_MERGED, *command.argv)}),
            request,
            folder,
            limits,
            readable=(Mount(self.campaign.tree, TREE), *readable),
            writable=() if staging is None else (Mount(staging, STAGING),),
            words={"tree": str(TREE), "staging": str(STAGING)},
        )
        most = limits.output_kill_bytes
        try:
            with self._stoppable() as (stop, trip), _logged(log, most, trip) as (sink, full):
                return Called(ask_command(self.campaign, call, answer, stdout=sink, stop=stop), "")
        except CommandProblem as problem:
            if full.is_set() and not self._ending:
                return Called(None, f"{name} said more than the limit's {most} bytes")
            if problem.end_reason in _NOT_ITS_DOING:
                raise CallBroke(str(problem)) from problem
            return Called(None, " ".join(str(problem).split()))

    def end_all(self) -> None:
        """End every call that runs, and any that would start."""
        with self._lock:
            self._ending = True
            for descriptor in self._running:
                _trip(descriptor)

    @contextmanager
    def _stoppable(self) -> Iterator[tuple[int, int]]:
        stop, trip = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        with self._lock:
            self._running.add(trip)
            if self._ending:
                _trip(trip)
        try:
            yield stop, trip
        finally:
            with self._lock:
                self._running.discard(trip)
            os.close(stop)
            os.close(trip)


def _trip(descriptor: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.write(descriptor, b"x")


@contextmanager
def _logged(log: Path, most_bytes: int, trip: int) -> Iterator[tuple[int, threading.Event]]:
    """Give the write end of a pipe whose content goes to the log; too much of it trips the call.

    Whoever takes the write end over closes it.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    source, sink = os.pipe2(os.O_CLOEXEC)
    done, finish = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(source, False)
    full = threading.Event()
    with log.open("ab", buffering=0) as stream:
        pump = threading.Thread(
            target=_pump, args=(source, done, stream.fileno(), most_bytes, trip, full), name="wave-log"
        )
        pump.start()
        try:
            yield sink, full
        finally:
            # Not the pipe's end: a call that never started may have left the other one open.
            os.close(finish)
            pump.join()
            os.close(done)
            os.close(source)


def _pump(source: int, done: int, log: int, most_bytes: int, trip: int, full: threading.Event) -> None:
    """Move what comes to the log until the call is done; what is beyond the limit is read and dropped."""
    left, waiting = most_bytes, select.poll()
    waiting.register(source, select.POLLIN)
    waiting.register(done, select.POLLIN)
    ended = False
    while not ended:
        ended = any(descriptor == done for descriptor, _ in waiting.poll())
        while chunk := _read(source):
            # A log that cannot be written must not hold the command up; the step fails where it records.
            with contextlib.suppress(OSError):
                os.write(log, chunk[: max(0, left)])
            left -= len(chunk)
            if left < 0:
                full.set()
                _trip(trip)
        if chunk is not None:
            with contextlib.suppress(KeyError):
                waiting.unregister(source)


def _read(source: int) -> bytes | None:
    """Return what the pipe holds, nothing at its end, null where there is nothing now."""
    try:
        return os.read(source, _CHUNK_BYTES)
    except BlockingIOError:
        return None
