"""Starting what fills the lanes. Drivers need a serve for the round, so that nothing waits unseen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Literal

from roundkit.agents.contract import DryRun
from roundkit.agents.drivers import DRIVERS
from roundkit.agents.replay import ReplayOutcome, run_replay
from roundkit.core.clock import Deadline, now_utc
from roundkit.core.errors import Refused, RoundkitError, refuse
from roundkit.host.confine import ConfinementUnavailable
from roundkit.models.attempts import Cost
from roundkit.models.round_plan import FrozenLane, HarnessName, RoundPlan
from roundkit.rounds import attempts
from roundkit.rounds.control import read_status
from roundkit.rounds.drive_agent import AgentLane
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.locks import hold_lock, is_held
from roundkit.rounds.stopping import StopRequest, stop_on_signal
from roundkit.rounds.waiting import unseen_submissions
from roundkit.rules.attempts import open_reservation, remaining_s
from roundkit.store import open_store, store_exists

_POLL_S = 0.2


@dataclass(frozen=True)
class Driven:
    """What became of the lanes that were driven.

    Attributes:
        refused: Lanes in which nothing was started, with the reason in a line that was reported.
        failed: Lanes whose agent was started and did not come to an end of its own.
    """

    refused: tuple[str, ...]
    failed: tuple[str, ...]


def drive_lanes(
    folder: RoundFolder,
    *,
    harness: HarnessName | None = None,
    with_serve: bool,
    report: Callable[[str], None],
) -> Driven:
    """Fill the lanes, each by its own harness, all at the same time; those without one are a person's.

    SIGTERM or Ctrl-C ends the agents; their attempts stay charged.

    Args:
        folder: A launched round.
        harness: Only the lanes of this harness; null for all.
        with_serve: Start serve for as long as the drivers and their tickets need it.
        report: Takes one line for each thing that happens, from several threads.

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
    with nullcontext() if running else _serving(folder), stop_on_signal() as stop:
        driven = _drive_all(_Crew(folder, plan, stop, report), harness)
        if not running and not stop.is_set:
            _wait_until_measured(folder)
    return driven


def dry_run_lanes(folder: RoundFolder, harness: HarnessName | None = None) -> tuple[DryRun, ...]:
    """Return what would be started in each lane that has an agent. Nothing is started, and no clone made.

    Raises:
        Refused: a program is missing, or a lane asks for what is never granted.
    """
    plan = read_plan(folder)
    lanes = [lane for lane in plan.lanes if lane.harness in DRIVERS and harness in {None, lane.harness}]
    return tuple(AgentLane(folder, plan, lane, DRIVERS[lane.harness]).show() for lane in lanes)


@dataclass(frozen=True)
class _Crew:
    """The drivers of one launch."""

    folder: RoundFolder
    plan: RoundPlan
    stop: StopRequest
    report: Callable[[str], None]

    def drive(self, lane: FrozenLane) -> Literal["driven", "refused", "failed"]:
        """Fill one lane."""
        if lane.harness == "replay":
            return replay_lane(self.folder, self.plan, lane, report=self.report)
        if lane.harness not in DRIVERS:
            self.report(f"{lane.id}: harness {lane.harness}, filled by hand")
            return "driven"
        return self._agent(AgentLane(self.folder, self.plan, lane, DRIVERS[lane.harness]))

    def _agent(self, cell: AgentLane) -> Literal["driven", "refused", "failed"]:
        lane = cell.lane.id
        lock = self.folder.store / f"drive-{lane}.lock"
        try:
            with hold_lock(lock, code="lane-driven", what=f"a driver of lane {lane}"):
                if attempts.read_account(self.folder, lane).driven:
                    self.report(f"{lane}: already driven ({cell.cost()})")
                    return "driven"
                run = cell.run(stop=self.stop, report=self.report)
        except (Refused, ConfinementUnavailable) as error:
            self.report(f"{lane} not driven: {error}")
            return "refused"
        except OSError as error:
            self.report(f"{lane} broke, and its attempt stays charged: {error}")
            return "failed"
        self.report(f"{lane} ended: {run.end_reason}{': ' + run.detail if run.detail else ''}")
        self.report(f"{lane}: {cell.cost()}")
        return "driven" if run.end_reason in {"exited", "budget"} else "failed"


def _drive_all(crew: _Crew, harness: HarnessName | None) -> Driven:
    """Drive the lanes, each in a thread of its own, while this one takes signals."""
    lanes = [lane for lane in crew.plan.lanes if harness in {None, lane.harness}]
    if not lanes:
        crew.report(f"no lane of this round has harness {harness}")
        return Driven((), ())
    with ThreadPoolExecutor(max_workers=len(lanes), thread_name_prefix="lane") as pool:
        ends = {lane.id: pool.submit(crew.drive, lane) for lane in lanes}
        while any(not end.done() for end in ends.values()):
            time.sleep(_POLL_S)
    states = {lane: end.result() for lane, end in ends.items()}
    return Driven(
        refused=tuple(lane for lane, state in states.items() if state == "refused"),
        failed=tuple(lane for lane, state in states.items() if state == "failed"),
    )


def replay_lane(
    folder: RoundFolder,
    plan: RoundPlan,
    lane: FrozenLane,
    *,
    report: Callable[[str], None],
    as_played: FrozenLane | None = None,
) -> Literal["driven", "refused"]:
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
            book = attempts.read_account(folder, lane.id)
            if book.driven or (book.records and book.used_up and open_reservation(book) is None):
                phases = ", ".join(record.phase for record in book.records)
                report(f"{lane.id}: already driven (attempts: {phases})")
                return "driven"
            binding = attempts.claim_next(folder, lane.id, "replay")
            outcome, wall_s = _run(folder, plan, lane, as_played or lane, afresh=binding.ordinal > 1)
            actual = Cost(turns=0, tokens=0, micro_usd=0, wall_s=ceil(wall_s))
            attempts.settle(folder, binding, actual)
    except Refused as error:
        report(f"{lane.id} not driven: {error}")
        return "refused"
    report(f"{lane.id} submitted {', '.join(outcome.tickets) or 'nothing'}")
    for problem in outcome.problems:
        report(f"{lane.id}: {problem}")
    return "driven"


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
