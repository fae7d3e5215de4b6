"""Processes that tests start: none outlives its test, which may fail before it has ended them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any, TypeVar

Process = TypeVar("Process", bound=subprocess.Popen[Any])

_AFTER: list[Callable[[], object]] = []


def after_test(end: Callable[[], object]) -> None:
    """Have something ended after the test that runs, also one that fails."""
    _AFTER.append(end)


def ended_with_test(process: Process) -> Process:
    """Have a process killed after its test, where the test did not wait for its end."""
    after_test(lambda: _kill(process))
    return process


def end_started() -> None:
    """End what was started and still runs, the last one first."""
    while _AFTER:
        _AFTER.pop()()


def _kill(process: subprocess.Popen[Any]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
