"""Saying what was wrong with a trial, and whose doing it was.

A problem's code is ``candidate-…`` or ``baseline-…`` by the side that ran. Whatever a candidate can bring
about counts as the candidate's: were it taken for bad luck, it would be measured again.
"""

from __future__ import annotations

import errno
import os
import signal as signals
from dataclasses import dataclass

from roundkit.harness import EXIT_CANDIDATE_RAISED, EXIT_WORKER_LOST
from roundkit.host.confine import Execution, Limits
from roundkit.measure.broke import MeasurementBroke
from roundkit.models.readings import ended_well
from roundkit.models.trial import Side

_DETAIL_CHARACTERS = 500
WHERE_PROGRAMS_ARE = (
    "a program has to lie in the checkout or in a folder of the plan's PATH, or be named by its absolute "
    "path in a folder that the plan makes readable"
)
"""What to do about a program that is missing inside."""

WHAT_VALIDATORS_SEE = (
    "a validator sees protected files and what the run left, nothing else: protect what it reads, by "
    "`protected_paths` or `--protect`"
)
"""What to do about a file that a validator does not find."""


@dataclass(frozen=True)
class Problem:
    """A stable code without its side, e.g. ``crashed``, and one line about it."""

    code: str
    detail: str

    def code_of(self, side: Side) -> str:
        """Return the code as it is recorded."""
        return f"{side}-{self.code}"


def end_problem(execution: Execution, limits: Limits) -> Problem | None:
    """Say how a process that runs candidate code ended badly; None where it exited with 0.

    Raises:
        MeasurementBroke: the boundary could not be set up, or the host itself ran out of memory.
    """
    if ended_well(execution):
        return None
    reason = execution.end_reason
    if reason == "setup-failed":
        raise MeasurementBroke("setup-failed", execution.detail or "the boundary could not be set up")
    if reason == "memory" and limits.memory_bytes is None:
        raise MeasurementBroke("host-memory", execution.detail or "the host ran out of memory")
    if reason == "deadline":
        return Problem("overrun", "still running at its time limit")
    if reason in ("cpu", "memory", "pids", "disk-limit", "output-limit"):
        return Problem("limit", f"{reason}: {execution.detail}" if execution.detail else reason)
    if execution.signal is not None:
        return Problem("crashed", _with_tail(f"ended by {_signal_name(execution.signal)}", execution))
    return Problem("crashed", _missing(execution) or _with_tail(f"ended with {_exit(execution)}", execution))


def pair_problem(driver: Execution, worker: Execution, limits: Limits) -> Problem | None:
    """Say how a driver and its worker ended badly, and whose doing that was.

    The driver is protected, but it waits for answers and reads them: a driver that ran out of time, or
    that says that its worker was lost, speaks of the worker.

    Raises:
        MeasurementBroke: a boundary could not be set up, or the host itself ran out of memory.
    """
    drivers = end_problem(driver, limits)
    workers = end_problem(worker, limits)
    if workers is not None and workers.code != "overrun":
        return workers
    if driver.end_reason == "exited" and driver.exit_code in (EXIT_WORKER_LOST, EXIT_CANDIDATE_RAISED):
        return Problem("crashed", _tail(driver) or "the worker was lost")
    if drivers is not None and (drivers.code != "overrun" or workers is None):
        return Problem("benchmark-broke", f"the driver: {drivers.detail}")
    return workers


def validator_problem(execution: Execution) -> Problem | None:
    """Say why a validator did not accept the outputs; None where it did.

    Outputs can make a validator hang or crash, so anything but acceptance is a rejection.

    Raises:
        MeasurementBroke: the boundary could not be set up.
    """
    if ended_well(execution):
        return None
    if execution.end_reason == "setup-failed":
        raise MeasurementBroke("setup-failed", execution.detail or "the boundary could not be set up")
    if missing := _missing(execution):
        return Problem("invalid", f"the validator did not run: {missing}")
    how = _exit(execution) if execution.end_reason == "exited" else execution.end_reason
    said = _with_tail(f"the validator rejected the outputs ({how})", execution)
    unfound = os.strerror(errno.ENOENT) in execution.stderr_tail
    return Problem("invalid", f"{said}; {WHAT_VALIDATORS_SEE}" if unfound else said)


def _exit(execution: Execution) -> str:
    return f"exit code {execution.exit_code}"


def _missing(execution: Execution) -> str:
    """Say that there was no such program, where a command ended for that; the boundary knows its name."""
    ended = execution.end_reason == "exited" and execution.exit_code != 0
    return f"{execution.detail}; {WHERE_PROGRAMS_ARE}" if ended and execution.detail else ""


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _with_tail(sentence: str, execution: Execution) -> str:
    tail = _tail(execution)
    return f"{sentence}: {tail}" if tail else sentence


def _tail(execution: Execution) -> str:
    """Return the last line that the process wrote to standard error, bounded and printable."""
    lines = [line.strip() for line in execution.stderr_tail.splitlines() if line.strip()]
    shown = "".join(letter if letter.isprintable() else " " for letter in lines[-1]) if lines else ""
    return shown[:_DETAIL_CHARACTERS]
