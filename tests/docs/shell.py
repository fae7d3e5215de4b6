"""The shell of a page's reader: one command by bash, and what it leaves for the next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import roundkit


@dataclass(frozen=True)
class Ran:
    """A command that ended.

    Attributes:
        command: As the shell was given it.
        output: What it printed, errors among it.
        exit_code: A negative one is the signal that ended the shell.
        wall_s: How long it took.
        place: Where the shell was in the end.
        variables: What its environment was in the end.
    """

    command: str
    output: str
    exit_code: int
    wall_s: float
    place: Path
    variables: dict[str, str]


def tools(*before: Path) -> dict[str, str]:
    """Return the variables by which a shell finds this roundkit, and the programs of some folders first."""
    path = [*map(str, before), str(Path(sys.executable).parent), os.environ["PATH"]]
    return {"PATH": os.pathsep.join(path), "PYTHONPATH": str(Path(roundkit.__file__).parent.parent)}


def run_in_shell(
    command: str,
    place: Path,
    variables: Mapping[str, str],
    *,
    typed: str = "",
    echo: bool = False,
    limit_s: float = threading.TIMEOUT_MAX,
) -> Ran:
    """Run one command; where it goes and what it exports is handed back, for the next one.

    Args:
        command: As somebody pastes it.
        place: Where the reader is.
        variables: The whole environment.
        typed: What a person types.
        echo: Lines are shown as they come.
        limit_s: When it is killed, with all that it started.
    """
    # Where the shell is in the end comes back by a file of its own, apart from what the command prints.
    with tempfile.TemporaryFile("w+") as told:
        script = f"{command}\nended=$?\n{{ pwd; env -0; }} >&{told.fileno()}\nexit $ended\n"
        begun = time.monotonic()
        with _killed_after(limit_s, subprocess.Popen(
            ["bash", "-c", script], cwd=place, env=dict(variables), text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=[told.fileno()],
        )) as process:  # fmt: skip
            lines = _spoken(process, typed, echo=echo)
            exit_code = process.wait()
        wall_s = time.monotonic() - begun
        told.seek(0)
        ended_at, _, rows = told.read().partition("\n")
    if ended_at:
        place = Path(ended_at)
    after = dict(row.split("=", 1) for row in rows.split("\0") if "=" in row) or dict(variables)
    return Ran(command, "".join(lines), exit_code, wall_s, place, after)


@contextmanager
def _killed_after(limit_s: float, process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Kill what the shell started once it takes too long, or once nobody waits for it any more."""

    def kill() -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    late = threading.Timer(limit_s, kill)
    late.start()
    try:
        with process:
            try:
                yield process
            except BaseException:
                kill()
                raise
    finally:
        late.cancel()


def _spoken(process: subprocess.Popen[str], typed: str, *, echo: bool) -> list[str]:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError), process.stdin as keyboard:
        keyboard.write(typed)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if echo:
            print(line, end="", flush=True)
    return lines
