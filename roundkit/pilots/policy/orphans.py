"""Ending what a killed run left alive: the serve of its rounds, before anything else measures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from roundkit.core.errors import refuse
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.locks import is_held

_GRACE_S = 30.0
_SAME_START_S = 0.01


def end_former_rounds(work: Path, report: Callable[[str], None]) -> None:
    """Ask every serve and close that still holds a round below a folder to end, and wait for it.

    Only a process that holds the round's lock, by the id and start time that it noted there, is asked.

    Args:
        work: A run's folder with its round directories.
        report: Takes one line for each process.

    Raises:
        Refused: ``still-running``: something holds a lock of the run and does not say who it is, or stays.
    """
    for lock in _locks(work):
        process = _holder(lock)
        if process is None:
            _refuse_held(lock)
            continue
        report(f"pid {process.pid} still works for a run that has ended; it is asked to stop")
        process.terminate()
        _, alive = psutil.wait_procs([process], timeout=_GRACE_S)
        for stubborn in alive:
            stubborn.kill()
        psutil.wait_procs(alive, timeout=_GRACE_S)
        _refuse_held(lock)


def _refuse_held(lock: Path) -> None:
    """Refuse to go on beside something that still measures: both would be wrong."""
    if is_held(lock):
        raise refuse(
            "still-running",
            "something still works for a run of this pilot that has ended, and nobody can tell what",
            place=str(lock),
            remedy="end it: `fuser LOCK` names it; then run the pilot again",
        )


def _locks(work: Path) -> Iterator[Path]:
    for plan in sorted(work.glob("*/round-plan.json")):
        folder = RoundFolder(plan.parent)
        yield from (folder.serve_lock, folder.close_lock)


def _holder(lock: Path) -> psutil.Process | None:
    if not is_held(lock):
        return None
    try:
        noted = json.loads(lock.with_suffix(".holder").read_bytes())
        process = psutil.Process(int(noted["pid"]))
        started: float = process.create_time()
    except (OSError, ValueError, KeyError, TypeError, psutil.Error):
        return None
    return process if abs(started - float(noted["started"])) < _SAME_START_S else None
