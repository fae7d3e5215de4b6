"""SIGTERM and Ctrl-C as a request that long work looks at, so that nothing is left half-written."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # For annotations only: who waits for a signal must not wait for numpy and scipy.
    from roundkit.measure.pool import DevicePool
    from roundkit.models.experiment import ExperimentRecord

_AT_ONCE = "stopped at once; nothing is lost, the same command goes on where it was"
_POLL_S = 0.2


class StopRequest:
    """Whether somebody asked for the end. A plain flag: a signal handler may not wait for a lock."""

    def __init__(self) -> None:
        self.is_set = False

    def set(self) -> None:
        """Ask for the end."""
        self.is_set = True


@contextmanager
def stop_on_signal(
    *, first: str | None = None, at_once: str = _AT_ONCE, leaving: Callable[[], None] | None = None
) -> Iterator[StopRequest]:
    """Turn the first SIGTERM or Ctrl-C into a request; the second ends the process there and then.

    A process that is killed at any moment loses nothing, so a person in a hurry may ask twice.

    Args:
        first: What is said at the first signal, if anything.
        at_once: What is said at the second.
        leaving: Called then, to end what would outlive this process; it may wait for no lock.
    """
    stop = StopRequest()

    def handle(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set:
            if leaving is not None:
                leaving()
            _tell(at_once)
            os._exit(1)
        stop.set()
        if first is not None:
            _tell(first)

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell(sentence: str) -> None:
    """Write to standard error without a lock: whatever the signal interrupted may hold it."""
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"roundkit: {sentence}\n".encode())


def record_or_stop(future: Future[ExperimentRecord], pool: DevicePool, stop: StopRequest) -> ExperimentRecord:
    """Wait for a record, and end the experiment at its next trial when somebody asks for the end.

    Raises:
        DeviceBusy: somebody outside the pool took the device set.
    """
    while True:
        if stop.is_set:
            pool.close()
        try:
            return future.result(timeout=_POLL_S)
        except NotYet:
            continue
