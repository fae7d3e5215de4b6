"""SIGTERM and Ctrl-C as a request that long work looks at, so that nothing is left half-written."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_AT_ONCE = "roundkit: stopped at once; nothing is lost, the same command goes on where it was\n"


class StopRequest:
    """Whether somebody asked for the end. A plain flag: a signal handler may not wait for a lock."""

    def __init__(self) -> None:
        self.is_set = False

    def set(self) -> None:
        """Ask for the end."""
        self.is_set = True


@contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """Turn the first SIGTERM or Ctrl-C into a request; the second ends the process there and then.

    A process that is killed at any moment loses nothing, so a person in a hurry may ask twice.
    """
    stop = StopRequest()

    def handle(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set:
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, _AT_ONCE.encode())
            os._exit(1)
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
