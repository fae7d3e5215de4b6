"""Starting what fills the lanes. Drivers need a serve for the round, so that nothing waits unseen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from math import ceil
from pathlib import Path

from roundkit.agents.replay import ReplayOutcome, run_replay
from roundkit.core.clock import Deadline, now_utc
from roundkit.core.errors import Refused, RoundkitError, refuse
from roundkit.models.attempts import AttemptBinding, Cost
from roundkit.models.round_plan import FrozenLane, RoundPlan
from roundkit.rounds import attempts
from roundkit.rounds.control import read_status
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.locks import hold_lock, is_held
from roundkit.rounds.waiting import unseen_submissions
from roundkit.rules.attempts import open_reservation, remaining_s
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
            replay_lane(folder, plan, lane, report=report)
        if not running:
            _wait_until_measured(folder)


def replay_lane(
    folder: RoundFolder,
    plan: RoundPlan,
    lane: FrozenLane,
    *,
    report: Callable[[str], None],
    as_played: FrozenLane | None = None,
) -> None:
    """Replay one lane as one attempt: reserved, claimed, run until its deadline, settled.

    A lane that was driven to its end, or that has no attempt left, is left alone. Whatever breaks after the
    claim leaves the attempt claimed, and charged.

    Args:
        folder: A launched round.
        plan: Its plan.
        lane: A lane of the plan, whose budget is charged.
        report: Takes one line for each thing that happens.
        as_played: The lane as its agent plays it, where that is not the lane of the plan.
    """
    lock = folder.store / f"drive-{lane.id}.lock"
    try:
        with hold_lock(lock, code="lane-driven", what=f"a driver of lane {lane.id}"):
            binding = _claim_attempt(folder, lane)
            if binding is None:
                phases = ", ".join(record.phase for record in attempts.read_account(folder, lane.id).records)
                report(f"{lane.id}: already driven (attempts: {phases})")
                return
            outcome, wall_s = _run(folder, plan, lane, as_played or lane, afresh=binding.ordinal > 1)
            actual = Cost(turns=0, tokens=0, micro_usd=0, wall_s=ceil(wall_s))
            attempts.settle(folder, binding, actual)
    except Refused as error:
        report(f"{lane.id} not driven: {error}")
        return
    report(f"{lane.id} submitted {', '.join(outcome.tickets) or 'nothing'}")
    for problem in outcome.problems:
        report(f"{lane.id}: {problem}")


def _claim_attempt(folder: RoundFolder, lane: FrozenLane) -> AttemptBinding | None:
    """Reserve and claim the lane's next attempt; None when it was driven to its end already.

    A reservation that a driver left when it died is taken up: nobody runs it, and it is charged.
    """
    book = attempts.read_account(folder, lane.id)
    binding = open_reservation(book)
    if binding is None:
        if book.records and (book.used_up or any(record.phase == "settled" for record in book.records)):
            return None
        binding = attempts.propose(folder, lane.id, f"replay-{uuid.uuid4().hex}")
        attempts.reserve(folder, binding)
    return attempts.claim(folder, binding).binding


def _run(
    folder: RoundFolder, plan: RoundPlan, lane: FrozenLane, played: FrozenLane, *, afresh: bool
) -> tuple[ReplayOutcome, float]:
    """Replay a lane within the time that it has left; return what came of it, and the seconds it took."""
    started = time.monotonic()
    deadline = Deadline.after(remaining_s(lane, now_utc()))
    outcome = run_replay(
        played, folder.clone(lane.id), Path(plan.repository), deadline=deadline, afresh=afresh
    )
    return outcome, time.monotonic() - started


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
