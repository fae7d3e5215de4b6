"""A command on a terminal of its own: what it shows there, and what Ctrl-C does to it and its processes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from support.processes import after_test, ended_with_test

_MARK = "ROUNDKIT_TEST_TERMINAL"
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b\(B|\x1b[=>]|\x07")
_WITHIN_S = 120.0


def read_until_closed(terminal: int) -> bytes:
    """Return what is shown on a terminal until its last process has left, and close it."""
    with os.fdopen(terminal, "rb", buffering=0) as stream:
        shown = b""
        while True:
            try:
                chunk = stream.read(1 << 16)
            except OSError:  # Linux says so when nobody has the other end open
                return shown
            if not chunk:
                return shown
            shown += chunk


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """One command whose input, output and errors are a terminal, 80 columns wide.

    Args:
        argv: The command.
        cwd: The folder that it runs in.
        environment: Its variables.
        own: Whether the terminal is its controlling one, as shells want it.
    """

    def __init__(
        self, argv: Sequence[str], *, cwd: Path, environment: dict[str, str], own: bool = False
    ) -> None:
        self._mark = uuid.uuid4().hex
        self._ours, theirs = pty.openpty()
        self.process = ended_with_test(subprocess.Popen(
            argv, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env={**environment, "TERM": "xterm", "COLUMNS": "80", _MARK: self._mark},
            preexec_fn=_take_terminal if own else None,
        ))  # fmt: skip
        after_test(self._kill_left)
        os.close(theirs)
        self._printed = b""

    @property
    def printed(self) -> str:
        """Everything that was shown, without colours and movements of the cursor."""
        return _ESCAPE.sub("", self._printed.decode(errors="replace")).replace("\r", "\n")

    def wait_for(self, pattern: str) -> None:
        """Wait until something is shown."""
        while not re.search(pattern, self.printed):
            assert self._read(), f"it ended without {pattern!r}: {self.printed}"

    def type(self, keys: str) -> None:
        """Press keys; a tab is ``\\t``, Enter ``\\n``."""
        os.write(self._ours, keys.encode())

    def interrupt(self) -> None:
        """Do what Ctrl-C does: signal the whole group in the foreground."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> int:
        """Wait for the command's end and return its exit code."""
        while self._read():
            pass
        os.close(self._ours)
        return self.process.wait(_WITHIN_S)

    def left_behind(self) -> list[psutil.Process]:
        """Return the processes that the command started and that still run."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(_MARK) == self._mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def _kill_left(self) -> None:
        for process in self.left_behind():
            with suppress(psutil.Error):
                process.kill()

    def _read(self) -> bool:
        readable, _, _ = select.select([self._ours], [], [], _WITHIN_S)
        assert readable, f"nothing more was shown for {_WITHIN_S} s: {self.printed}"
        try:
            chunk = os.read(self._ours, 1 << 16)
        except OSError:  # Linux says so when nobody has the other end open
            return False
        self._printed += chunk
        return bool(chunk)
