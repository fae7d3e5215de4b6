"""Instructions by the hardware: ``perf stat``, attached to the waiting command from outside the boundary.

The counter is inherited by whatever the command starts, and read when all of it is gone. Nothing of it is
inside: neither a file, nor a descriptor, nor the right to open a counter.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from types import TracebackType
from typing import Self

from roundkit.measure.broke import MeasurementBroke
from roundkit.measure.instruments.tools import find_tool

EVENT = "instructions:u"

_READY_WITHIN_S = 30.0
_END_WITHIN_S = 30.0
_OUTPUT_BYTES = 65536
_WHOLE_PERCENT = 99.995
"""Share of the time that a counter must have counted; with less, the figure is an extrapolation."""


class PerfCount:
    """One counter on one command.

    Args:
        event: What is counted, as ``perf`` names it.

    Raises:
        MeasurementBroke: ``instrument-missing``: there is no ``perf``.
    """

    def __init__(self, event: str = EVENT) -> None:
        path = find_tool("perf")
        if path is None:
            raise _missing("there is no perf on this host")
        self.path = path
        self._event = event
        self._process: subprocess.Popen[bytes] | None = None
        self._ours: list[int] = []
        self._output = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for fd in self._ours:
            os.close(fd)

    def attach(self, pid: int) -> None:
        """Count a process, and what it will start, from now on; returns once the counter runs.

        Raises:
            MeasurementBroke: ``instrument-missing``: it cannot be counted.
        """
        commands, to_perf = os.pipe2(os.O_CLOEXEC)
        from_perf, answers = os.pipe2(os.O_CLOEXEC)
        self._output, log = os.pipe2(os.O_CLOEXEC)
        self._ours = [to_perf, from_perf, self._output]
        theirs = (commands, answers, log)
        try:
            self._process = subprocess.Popen(
                [
                    *(self.path, "stat", "-e", self._event, "-x,", "-D", "-1", "-p", str(pid)),
                    *("--control", f"fd:{commands},{answers}", "--log-fd", str(log)),
                ],
                pass_fds=theirs,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"LC_ALL": "C", "PATH": os.defpath},
                start_new_session=True,
            )
        finally:
            for fd in theirs:
                os.close(fd)
        _await_enabled(to_perf, from_perf)

    def count(self) -> int:
        """Return the count, once everything that was counted is gone.

        Raises:
            MeasurementBroke: ``instrument-missing``: the hardware gave none; ``counter-shared``: others had
                it for a part of the time.
        """
        if self._process is None:
            raise _missing("nothing was counted")
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(_END_WITHIN_S)
        except subprocess.TimeoutExpired:
            raise _missing("perf did not end") from None
        return parse_stat(os.read(self._output, _OUTPUT_BYTES).decode("ascii", "replace"), self._event)


def parse_stat(text: str, event: str) -> int:
    """Read the one row of ``perf stat -x,``: value, unit, event, time, and the share of it in per cent.

    Raises:
        MeasurementBroke: ``instrument-missing``, ``counter-shared``.
    """
    rows = [line.split(",") for line in text.splitlines() if event in line.split(",")]
    if len(rows) != 1 or len(rows[0]) < 5:
        raise _missing(f"perf gave no row for {event}")
    value, share = rows[0][0], rows[0][4]
    if not value.isdecimal() or int(value) == 0:
        raise _missing(f"perf says {value!r} of {event}")
    if float(share) < _WHOLE_PERCENT:
        raise MeasurementBroke("counter-shared", f"{event} was counted for {share} % of the time only")
    return int(value)


def _await_enabled(to_perf: int, from_perf: int) -> None:
    try:
        os.write(to_perf, b"enable\n")
    except BrokenPipeError:
        raise _missing("perf ended before it counted") from None
    ready, _, _ = select.select([from_perf], [], [], _READY_WITHIN_S)
    if not ready or not os.read(from_perf, 16).startswith(b"ack"):
        raise _missing("perf did not say that it counts")


def _missing(detail: str) -> MeasurementBroke:
    return MeasurementBroke("instrument-missing", detail)
