"""Commands as processes of their own: they outlive whoever started them, and others find them again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from roundkit.core.errors import RoundkitError
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.locks import is_held_by
from roundkit.rounds.serve_state import Until
from roundkit.store import open_store, store_exists

_POLL_S = 0.05
_LOG_TAIL_BYTES = 20_000
UNATTENDED = "ROUNDKIT_UNATTENDED"
"""Tells a command that a program started it: nobody is to be told what to type next."""
_OF_A_TERMINAL = frozenset({"CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "TERM"})


@dataclass(frozen=True)
class Started:
    """A command that was started.

    Attributes:
        name: The command.
        log: What it says; it goes on when its starter has ended.
        offset: Where in the log this run begins.
    """

    name: str
    log: Path
    offset: int
    _process: subprocess.Popen[bytes] = field(repr=False)

    def holds(self, lock: Path) -> bool:
        """Say whether it, and nobody else, holds a lock of the round."""
        return is_held_by(lock, self._process.pid)

    def exit_code(self) -> int | None:
        """Return how it ended, null while it runs."""
        return self._process.poll()

    def said(self) -> str:
        """Return what this run has said so far."""
        with self.log.open("rb") as stream:
            stream.seek(self.offset)
            return stream.read().decode("utf-8", "replace")

    def last_words(self) -> str:
        """Return the sentence with which it ended, with its remedy."""
        _, found, sentence = self.said().rpartition("roundkit: ")
        last = sentence if found else "\n".join(self.said().strip().splitlines()[-2:])
        return last.strip() or f"{self.name} ended with exit code {self.exit_code()}"

    def lines(self) -> Iterator[str]:
        """Yield each line that it says, until it has ended."""
        shown = 0
        while True:
            ended = self.exit_code() is not None
            whole = self.said().splitlines(keepends=True)
            if not ended and whole and not whole[-1].endswith("\n"):
                whole.pop()
            yield from (line.rstrip("\n") for line in whole[shown:])
            shown = len(whole)
            if ended:
                return
            time.sleep(_POLL_S)


class CommandEnded(RoundkitError):
    """A command ended before it did what it was started for; the sentence is its own."""


def start_serve(folder: RoundFolder, *, until: Until) -> Started:
    """Start serve, and return once it owns the queue.

    Args:
        folder: The round.
        until: ``idle`` ends when nothing waits any more, ``deadline`` waits for more until the deadline.

    Raises:
        Refused: there is no round there.
        CommandEnded: serve refused, and says why.
    """
    started = _start(folder, "serve", f"--until-{until}")
    # Of a round that is being closed, serve takes the lock for a moment before it refuses.
    _wait(started, lambda: started.holds(folder.serve_lock) and not _is_begun(folder))
    return started


def start_close(folder: RoundFolder) -> Started:
    """Start close, and return once it has begun to decide, or has closed the round.

    Raises:
        Refused: there is no round there.
        CommandEnded: close refused, and says why.
    """
    started = _start(folder, "close")
    _wait(started, lambda: started.holds(folder.close_lock) and _is_begun(folder))
    return started


def start_drivers(folder: RoundFolder, drive: str, *, with_serve: bool) -> Started:
    """Start what fills the lanes, with a serve for as long as it needs one where none runs.

    Args:
        folder: A launched round.
        drive: Which lanes to fill, as ``roundkit launch --drive`` takes it.
        with_serve: Whether to start serve where none runs.

    Raises:
        Refused: there is no round there.
    """
    serving = ["--with-serve"] if with_serve else []
    return _start(folder, "launch", "--drive", drive, *serving)


def log_tail(folder: RoundFolder, name: str, lines: int) -> list[str]:
    """Return the last lines that a command started here has said; none when it never was."""
    try:
        with _log(folder, name).open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _LOG_TAIL_BYTES))
            return stream.read().decode("utf-8", "replace").splitlines()[-lines:]
    except FileNotFoundError:
        return []


def _start(folder: RoundFolder, command: str, *options: str) -> Started:
    read_plan(folder)
    log = _log(folder, command)
    # A session of its own: neither an interrupt in a notebook nor the end of its kernel reaches it. -P keeps
    # the folder that a notebook lies in out of the import path.
    argv = [sys.executable, "-P", "-m", "roundkit", command, str(folder.root), *options]
    with log.open("ab") as stream:
        offset = stream.tell()
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True,
            env={name: value for name, value in os.environ.items() if name not in _OF_A_TERMINAL}
            | {UNATTENDED: "1"},
        )  # fmt: skip
    return Started(command, log, offset, process)


def _wait(started: Started, ready: Callable[[], bool]) -> None:
    while not ready():
        code = started.exit_code()
        if code == 0:
            return
        if code is not None:
            raise CommandEnded(started.last_words())
        time.sleep(_POLL_S)


def _is_begun(folder: RoundFolder) -> bool:
    if not store_exists(folder.database):
        return False
    with open_store(folder.database, read_only=True) as store:
        return bool(store.steps.names())


def _log(folder: RoundFolder, command: str) -> Path:
    return folder.store / f"{command}.log"
