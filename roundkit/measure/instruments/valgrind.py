"""Instructions by valgrind's cachegrind: read from the files that every process leaves, and checked.

Each process has a log, opened when it starts, and a count file, written once at its end. The folder lies
inside the boundary, since valgrind runs there as the candidate's own user. So the kernel is asked what
happened in it: a file that was opened, moved, deleted or written more often than valgrind does it is not
believed, nor are two files that disagree. A process that has no count at its end was killed.

What is left: valgrind shares an address space with what it runs, so machine code made for the purpose can
change its counters, or ask valgrind (a client request) to call a function on the real processor, uncounted;
no option of valgrind turns that off. A process that executes another program in its place loses the count so
far: the benchmark's own process may not, and a child only once. Counts by valgrind are labelled forgeable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from roundkit.host.confine import HostileOutput, read_output
from roundkit.measure.folder_watch import (
    CLOSED,
    CREATED,
    DELETED,
    MODIFIED,
    MOVED_AWAY,
    MOVED_HERE,
    OPENED,
    OVERFLOWED,
    FolderWatch,
)
from roundkit.measure.instruments.reading import CountProblem, parse_log, parse_out
from roundkit.models.instruments import InstructionCount, ProcessCount

_NAME = re.compile(rb"([1-9][0-9]{0,9})\.(log|out)")
_LOG_BYTES = 1 << 20
_OUT_BYTES = 1 << 26
_SHOWN_CHARACTERS = 80


@dataclass
class _History:
    """What happened to one file: how often it was created and opened, and how many have it open now."""

    created: int = 0
    opened: int = 0
    now_open: int = 0
    problem: str | None = None

    def take(self, mask: int) -> None:
        """Follow one event."""
        self.created += bool(mask & CREATED)
        if mask & OPENED:
            if self.now_open:
                self.problem = "was opened by something else while it was being written"
            self.opened += 1
            self.now_open += 1
        if mask & CLOSED:
            self.now_open -= 1
        if mask & (MOVED_AWAY | MOVED_HERE | DELETED):
            self.problem = "was moved or deleted"


class CountFolder:
    """Watches the folder that valgrind writes into, from before the run until it is over.

    Args:
        folder: The folder, on the host.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._watch = FolderWatch(
            folder, MODIFIED | CLOSED | OPENED | MOVED_AWAY | MOVED_HERE | CREATED | DELETED
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.__exit__(kind, error, trace)

    def count(self) -> InstructionCount:
        """Return the count, after everything that ran has ended; call once.

        Raises:
            CountProblem: something did not come about as valgrind makes it.
        """
        histories = self._histories()
        pids = sorted({int(name.partition(b".")[0]) for name in histories})
        if not pids:
            raise CountProblem("nothing was counted: the benchmark did not run under valgrind")
        processes, versions = [], set()
        for pid in pids:
            _check(histories, pid, root=pid == pids[0])
            log = parse_log(self._read(f"{pid}.log", _LOG_BYTES), pid)
            total = parse_out(self._read(f"{pid}.out", _OUT_BYTES), pid)
            if total != log.instructions:
                raise CountProblem(
                    f"process {pid} has two counts: {log.instructions} in its log, {total} in its count file"
                )
            processes.append(ProcessCount(pid=pid, instructions=total))
            versions.add(log.version)
        if len(versions) > 1:
            raise CountProblem(f"the logs name several versions: {', '.join(sorted(versions))}")
        whole = sum(process.instructions for process in processes)
        if whole < 1:
            raise CountProblem("not one instruction was counted")
        return InstructionCount(
            tool="valgrind", version=versions.pop(), total=whole, processes=tuple(processes)
        )

    def _histories(self) -> dict[bytes, _History]:
        histories: dict[bytes, _History] = {}
        for mask, name in self._watch.events():
            if mask & OVERFLOWED:
                raise CountProblem("too much happened in the folder of the counts to tell who wrote them")
            if not name:
                continue  # the folder itself: somebody listed it
            if not _NAME.fullmatch(name):
                shown = os.fsdecode(name)[:_SHOWN_CHARACTERS]
                raise CountProblem(f"{shown!r} among the counts is no file of valgrind's")
            histories.setdefault(name, _History()).take(mask)
        return histories

    def _read(self, name: str, limit_bytes: int) -> bytes:
        try:
            return read_output(self._folder, name, limit_bytes)
        except HostileOutput as error:
            raise CountProblem(f"a count cannot be read: {error.detail}") from error


def _check(histories: dict[bytes, _History], pid: int, *, root: bool) -> None:
    """Hold what happened to the two files of a process against what valgrind does.

    Raises:
        CountProblem: they differ.
    """
    log, out = histories.get(b"%d.log" % pid), histories.get(b"%d.out" % pid)
    if log is None or out is None:
        raise CountProblem(f"process {pid} ended without its count: killed, or still running at the end")
    for name, history in (("log", log), ("count file", out)):
        if history.problem is not None:
            raise CountProblem(f"the {name} of process {pid} {history.problem}")
    for problem in _surplus(log, out, root=root):
        raise CountProblem(f"process {pid}: {problem}")


def _surplus(log: _History, out: _History, *, root: bool) -> Iterator[str]:
    if out.created != 1 or out.opened != 1:
        yield f"its count file was made {out.created} and opened {out.opened} times; valgrind does it once"
    if log.created != 1:
        yield f"its log was made {log.created} times; valgrind does it once"
    # A child forks, and then executes its program: valgrind begins the log once more.
    allowed = 1 if root else 2
    if log.opened > allowed:
        yield (
            f"its log was opened {log.opened} times, not {allowed}: it was written by something else, or the"
            " process executed another program in its place, and what it did before that is not counted"
        )
