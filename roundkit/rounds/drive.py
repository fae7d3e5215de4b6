"""Starting what fills the lanes. Drivers need a serve for the round, so that nothing waits unseen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from roundkit.agents.contract import DryRun
from roundkit.agents.drivers import DRIVERS
from roundkit.core.errors import Refused, RoundkitError, refuse
from roundkit.core.progress import SILENT, Progress
from roundkit.host.confine import ConfinementUnavailable
from roundkit.models.round_plan import FrozenLane, HarnessName, RoundPlan
from roundkit.rounds import attempts
from roundkit.rounds.control import read_status
from roundkit.rounds.drive_agent import AgentLane
from roundkit.rounds.drive_replay import replay_lane
from roundkit.rounds.drive_swarmflow import agent_worker, drive_swarmflow
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.locks import hold_lock, is_held
from roundkit.rounds.stopping import StopRequest, stop_on_signal
from roundkit.rounds.swarmflow import render_round, swarm_round
from roundkit.rounds.waiting_submissions import unseen_submissions
from roundkit.store import open_store, store_exists

_POLL_S = 0.2

LaneState = Literal["driven", "refused", "failed"]


@dataclass(frozen=True)
class Driven:
    """What became of the lanes that were driven.

    Attributes:
        refused: Lanes in which nothing was started, with the reason in a line that was reported.
        failed: Lanes whose agent was started and did not come to an end of its own.
        interrupted: Whether somebody asked for the end, of agents or of the wait for their tickets.
    """

    refused: tuple[str, ...]
    failed: tuple[str, ...]
    interrupted: bool = False


def drive_lanes(
    folder: RoundFolder,
    *,
    harness: HarnessName | None = None,
    with_serve: bool,
    report: Callable[[str], None],
    engine: Path | None = None,
    progress: Progress = SILENT,
) -> Driven:
    """Fill the lanes, each by its own harness, all at the same time; those without one are a person's.

    SIGTERM or Ctrl-C ends the agents, whose attempts stay charged, or the wait for their tickets.

    Args:
        folder: A launched round.
        harness: Only the lanes of this harness; null for all.
        with_serve: Start serve for as long as the drivers and their tickets need it.
        report: Takes one line for each thing that happens, from several threads.
        engine: Folder with the SwarmFlow engine; without it, whoever runs the round's script fills its lanes.
        progress: Shows how many lanes have come to their end.

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
    own: list[subprocess.Popen[bytes]] = []
    with (
        stop_on_signal(leaving=partial(_kill, own)) as stop,
        nullcontext() if running else _serving(folder, own),
    ):
        driven = _drive_all(_Crew(folder, plan, stop, report, engine), harness, progress)
        if not running:
            _wait_until_measured(folder, stop)
    return replace(driven, interrupted=stop.is_set)


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
    engine: Path | None = None

    def drive(self, lane: FrozenLane) -> LaneState:
        """Fill one lane."""
        if lane.harness == "replay":
            return replay_lane(self.folder, self.plan, lane, report=self.report)
        if lane.harness not in DRIVERS:
            self.report(f"{lane.id}: harness {lane.harness}, filled by hand")
            return "driven"
        return self._agent(AgentLane(self.folder, self.plan, lane, DRIVERS[lane.harness]))

    def drive_alone(self, lane: FrozenLane) -> dict[str, LaneState]:
        """Fill one lane and say what became of it."""
        return {lane.id: self.drive(lane)}

    def drive_team(self, engine: Path) -> dict[str, LaneState]:
        """Fill the lanes of a SwarmFlow round, all by one run of its engine."""
        try:
            swarm = swarm_round(self.folder)
            worker = agent_worker(swarm, stop=self.stop, report=self.report)
            script = render_round(swarm)
            reports = drive_swarmflow(swarm, script, engine=engine, worker=worker, report=self.report)
        except (Refused, ConfinementUnavailable) as error:
            self.report(f"swarmflow lanes not driven: {error}")
            return {lane.id: "refused" for lane in self.plan.lanes if lane.harness == "swarmflow"}
        return {lane.id: "driven" if lane.id in reports.by_lane else "failed" for lane in swarm.lanes}

    def _agent(self, cell: AgentLane) -> LaneState:
        lane = cell.lane.id
        lock = self.folder.drive_lock(lane)
        try:
            with hold_lock(lock, code="lane-driven", what=f"a driver of lane {lane}"):
                if attempts.read_account(self.folder, lane).driven:
                    self.report(f"{lane}: already driven ({cell.cost()})")
                    return "driven"
                run = cell.run(stop=self.stop, report=self.report)
        except (Refused, ConfinementUnavailable) as error:
            self.report(f"{lane} not driven: {error}")
            return "refused"
        self.report(f"{lane} ended: {run.end_reason}{': ' + run.detail if run.detail else ''}")
        self.report(f"{lane}: {cell.cost()}")
        return "driven" if run.end_reason in {"exited", "budget"} else "failed"


def _drive_all(crew: _Crew, harness: HarnessName | None, progress: Progress) -> Driven:
    """Drive the lanes, each in a thread of its own, while this one takes signals."""
    lanes = [lane for lane in crew.plan.lanes if harness in {None, lane.harness}]
    if not lanes:
        crew.report(f"no lane of this round has harness {harness}")
        return Driven((), ())
    jobs = list(_jobs(crew, lanes))
    with (
        ThreadPoolExecutor(max_workers=len(jobs), thread_name_prefix="lane") as pool,
        progress.task(f"filling lanes of {crew.plan.round_id}", len(lanes), "lanes") as task,
    ):
        ends = [(pool.submit(job.drive), job.lanes) for job in jobs]
        while task.done < len(lanes):
            ended = sum(len(ids) for end, ids in ends if end.done())
            if ended != task.done:
                task.set(ended)
            else:
                time.sleep(_POLL_S)
    states: dict[str, LaneState] = {}
    for end, ids in ends:
        # One lane that breaks is that lane's failure: the others were driven, and their tickets are measured.
        if (error := end.exception()) is None:
            states.update(end.result())
            continue
        crew.report(f"{', '.join(ids)} broke, and what was claimed stays charged: {_said(error)}")
        states.update(dict.fromkeys(ids, "failed"))
    return Driven(
        refused=tuple(lane for lane, state in states.items() if state == "refused"),
        failed=tuple(lane for lane, state in states.items() if state == "failed"),
    )


def _said(error: BaseException) -> str:
    return str(error) if isinstance(error, RoundkitError | OSError) else f"{type(error).__name__}: {error}"


@dataclass(frozen=True)
class _Job:
    """What one thread drives."""

    lanes: tuple[str, ...]
    drive: Callable[[], dict[str, LaneState]]


def _jobs(crew: _Crew, lanes: Sequence[FrozenLane]) -> Iterator[_Job]:
    """Yield one job a lane, but one for all the lanes that an engine fills."""
    engine = crew.engine
    for lane in lanes:
        if engine is None or lane.harness != "swarmflow":
            yield _Job((lane.id,), partial(crew.drive_alone, lane))
    team = tuple(lane.id for lane in lanes if lane.harness == "swarmflow")
    if engine is not None and team:
        yield _Job(team, partial(crew.drive_team, engine))


@contextmanager
def _serving(folder: RoundFolder, own: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Run serve as a process of its own, which is noted as such, and drain it at the end."""
    # -P: the folder that launch is called in may be a lane's clone, and nothing of it is a module of serve.
    argv = [sys.executable, "-P", "-m", "roundkit", "serve", str(folder.root), "--until-deadline"]
    # In a session of its own: Ctrl-C would be its first signal, and ours below the second.
    serve = subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=dict(os.environ), start_new_session=True)
    own.append(serve)
    try:
        while not is_held(folder.serve_lock):
            if serve.poll() is not None:
                raise RoundkitError(f"serve ended with exit code {serve.returncode} before it began")
            time.sleep(_POLL_S)
        yield
    finally:
        if serve.poll() is None:
            serve.send_signal(signal.SIGTERM)
        try:
            serve.wait()
        except BaseException:
            # Somebody is in a hurry. A serve that is killed loses nothing; one left behind holds cores.
            serve.kill()
            serve.wait()
            raise


def _kill(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()


def _wait_until_measured(folder: RoundFolder, stop: StopRequest) -> None:
    """Wait until every submission has been taken in and has its verdict, the queue is paused, or a signal."""
    while is_held(folder.serve_lock) and not stop.is_set:
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
