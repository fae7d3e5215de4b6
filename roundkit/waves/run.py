"""Drafter and gater together: two processes, neither of which ends with the other, or with this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from roundkit.evidence import wave_layout as names
from roundkit.rounds.stopping import stop_on_signal
from roundkit.waves import locks, stop
from roundkit.waves.folder import CampaignFolder

UNDER_RUN = "--under-run"
"""Told to a half that `waves run` starts, so that it does not take back a request to stop."""

_POLL_S = 0.2
_CHUNK_BYTES = 1 << 16
_FIRST = "both halves end after their current step; once more leaves at once and lets them go on"
_AT_ONCE = "left; both halves go on: `roundkit waves status WAVE_DIR`"


@dataclass
class _Half:
    """One of the two processes.

    Attributes:
        name: What it is called.
        command: The command that it runs.
        other: What goes on when it has ended.
    """

    name: Literal["drafter", "gater"]
    command: str
    other: str
    log: Path
    process: subprocess.Popen[bytes]
    offset: int
    rest: bytes = b""
    told: bool = False

    def relay(self, say: Callable[[str], None]) -> None:
        """Pass on the lines that it has said since the last time."""
        with self.log.open("rb") as stream:
            stream.seek(self.offset)
            chunk = stream.read(_CHUNK_BYTES)
        self.offset += len(chunk)
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        for line in lines:
            say(f"{self.name}: {line.decode('utf-8', 'replace')}")


def run_both(folder: CampaignFolder, *, say: Callable[[str], None]) -> int:
    """Start both halves and follow them until both have ended. Neither is ever started again by itself.

    Args:
        folder: The campaign.
        say: Takes each line.

    Returns:
        0 when both came to their end, else 1.

    Raises:
        Refused: a half, or another `waves run`, runs already.
    """
    with locks.hold(folder, "run"), stop_on_signal(first=_FIRST, at_once=_AT_ONCE) as asked:
        for name in ("drafter", "gater"):
            if locks.runs(folder, name):
                # The same refusal as the half itself would give.
                with locks.hold(folder, name):
                    pass
        stop.lift(folder)
        # That the drafter of an earlier start has ended is no news, and would end the gater.
        folder.at(names.DRAFTER).unlink(missing_ok=True)
        halves = [
            _start(folder, "drafter", "draft", names.DRAFTER_LOG, "gater"),
            _start(folder, "gater", "gate", names.GATER_LOG, "drafter"),
        ]
        passed_on = False
        while not all(half.told for half in halves):
            if asked.is_set and not passed_on:
                stop.ask(folder)
                passed_on = True
            for half in halves:
                _look(folder, half, halves, say)
            time.sleep(_POLL_S)
    if passed_on:
        say("stopped as asked; the same command goes on with the campaign")
    return 0 if all(half.process.returncode == 0 for half in halves) else 1


def _look(folder: CampaignFolder, half: _Half, halves: list[_Half], say: Callable[[str], None]) -> None:
    code = half.process.poll()
    half.relay(say)
    if code is None or half.told:
        return
    half.told = True
    if code == 0:
        say(f"{half.name} finished")
        return
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    goes_on = any(other is not half and not other.told for other in halves)
    rest = f"the {half.other} goes on; " if goes_on else ""
    say(f"{half.name} {how}: {rest}`roundkit waves {half.command} {folder.root}` starts it again")


def _start(
    folder: CampaignFolder, name: Literal["drafter", "gater"], command: str, log_name: str, other: str
) -> _Half:
    log = folder.at(log_name)
    argv = [sys.executable, "-P", "-m", "roundkit", "waves", command, str(folder.root), UNDER_RUN]
    with log.open("ab") as stream:
        offset = stream.tell()
        # A session of its own: an interrupt here is for this process to pass on.
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=dict(os.environ),
        )
    return _Half(name, command, other, log, process, offset)
