"""Reading what valgrind's cachegrind wrote: hostile bytes become a count here, or a reason why not."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SUMMARY = re.compile(r"I\s+refs:\s+([0-9]{1,3}(?:,[0-9]{3})*)")
_VERSION = re.compile(r"Using (Valgrind-[0-9][\w.+-]{0,40}) and LibVEX; rerun with -h for copyright info")
_OUT_SUMMARY = re.compile(rb"summary: ([0-9]{1,18})\n?")
_SHOWN_CHARACTERS = 80


class CountProblem(Exception):
    """The count is not usable, and the candidate's side could have brought that about."""


@dataclass(frozen=True)
class ProcessLog:
    """What one process's log says: valgrind's version, and the instructions counted until its end."""

    version: str
    instructions: int


def parse_log(data: bytes, pid: int) -> ProcessLog:
    """Read the log of one process.

    Valgrind writes its name and the command when a process starts, and the count as the last line when it
    ends. Every line carries the process id.

    Raises:
        CountProblem: something else stands in the file, or the count does not.
    """
    try:
        lines = data.decode("ascii", "surrogateescape").splitlines()
    except UnicodeError as error:  # pragma: no cover - surrogateescape decodes everything
        raise CountProblem(str(error)) from error
    prefixes = (f"=={pid}== ", f"--{pid}-- ")
    told = []
    for line in lines:
        if not line.startswith(prefixes):
            raise CountProblem(
                f"process {pid} has a line in its log that valgrind does not write: {_shown(line)}"
            )
        told.append(line[len(prefixes[0]) :].strip())
    version = _VERSION.fullmatch(told[2]) if len(told) > 5 else None
    if version is None or not told[0].startswith("Cachegrind") or not told[3].startswith("Command: "):
        raise CountProblem(f"the log of process {pid} does not begin as valgrind begins it")
    counts = [match for line in told if (match := _SUMMARY.fullmatch(line))]
    if not counts:
        raise CountProblem(f"process {pid} ended without its count: killed, or still running at the end")
    if len(counts) > 1 or not _SUMMARY.fullmatch(told[-1]):
        raise CountProblem(f"process {pid} has more in its log than one count at its end")
    return ProcessLog(version[1], int(counts[0][1].replace(",", "")))


def parse_out(data: bytes, pid: int) -> int:
    """Return the total in the file that cachegrind writes at a process's end.

    Raises:
        CountProblem: there is none.
    """
    match = _OUT_SUMMARY.fullmatch(data[data.rfind(b"\n", 0, -1) + 1 :])
    if match is None:
        raise CountProblem(f"the count file of process {pid} has no total at its end")
    return int(match[1])


def _shown(line: str) -> str:
    return repr(line[:_SHOWN_CHARACTERS])
