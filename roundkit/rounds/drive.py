"""Starting what fills the lanes. Drivers need a serve for the round, so that nothing waits unseen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from roundkit.agents.replay import run_replay
from roundkit.core.errors import RoundkitError, refuse
from roundkit.rounds.control import read_status
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.locks import is_held
from roundkit.rounds.waiting import unseen_submissions
from roundkit.store import open_store, store_exists

_POLL_S = 0.2


def drive_lanes(folder: RoundFolder, *, with_serve: bool, report: Callable[[str], None]) -> None:
    """Fill every lane whose harness is ``replay``; the others are a person's.

    Args:
        folder: A launched round.
        with_serve: Start serve for as long as the drivers and their tickets need it.
        report: Takes one line for each lane.

    Raises:
        Refused: ``no-serve``: no serve runs and none was asked for.
    """
    plan = read_plan(folder)
    running = is_held(folder.serve_lock)
    if not running and not with_serve:
        raise refuse(
            "no-serve",
            "no serve runs for this round",
            place=str(folder.root),
            remedy="start `roundkit serve ROUND_DIR` first, or add --with-serve",
        )
    with nullcontext() if running else _serving(folder):
        for lane in plan.lanes:
            if lane.harness != "replay":
                report(f"{lane.id}: harness {lane.harness}, filled by hand")
                continue
            outcome = run_replay(lane, folder.clone(lane.id), Path(plan.repository))
            report(f"{lane.id} submitted {', '.join(outcome.tickets) or 'nothing'}")
        if not running:
            _wait_until_measured(folder)


@contextmanager
def _serving(folder: RoundFolder) -> Iterator[None]:
    """Run serve as a process of its own, and drain it at the end."""
    argv = [sys.executable, "-m", "roundkit", "serve", str(folder.root), "--until-deadline"]
    serve = subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=dict(os.environ))
    try:
        while not is_held(folder.serve_lock):
            if serve.poll() is not None:
                raise RoundkitError(f"serve ended with exit code {serve.returncode} before it began")
            time.sleep(_POLL_S)
        yield
    finally:
        if serve.poll() is None:
            serve.send_signal(signal.SIGTERM)
        serve.wait()


def _wait_until_measured(folder: RoundFolder) -> None:
    """Wait until every submission has been taken in and has its verdict, or the queue is paused."""
    while is_held(folder.serve_lock):
        status = read_status(folder)
        waiting = [ticket for _, ticket in status.tickets if ticket.state in {"queued", "measuring"}]
        if not _unseen(folder) and (not waiting or status.paused):
            return
        time.sleep(_POLL_S)


def _unseen(folder: RoundFolder) -> bool:
    if not store_exists(folder.database):
        return True  # serve has only just begun
    with open_store(folder.database, read_only=True) as store:
        return bool(unseen_submissions(folder, read_plan(folder), store))
