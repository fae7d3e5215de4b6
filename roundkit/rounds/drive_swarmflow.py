"""A round's lanes filled by the SwarmFlow engine: each call of a worker is one attempt of its lane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from roundkit.agents.drivers import DRIVERS
from roundkit.agents.swarmflow.engine import EngineOrder, WorkerCall, WorkerFailed, run_engine
from roundkit.agents.swarmflow.reports import Reports, WorkerReport, sort_reports
from roundkit.core.clock import Deadline, now_utc
from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write
from roundkit.models.round_plan import FrozenLane
from roundkit.rounds import attempts
from roundkit.rounds.drive_agent import AgentLane
from roundkit.rounds.lane_doors import OutboxScan
from roundkit.rounds.locks import hold_lock
from roundkit.rounds.stopping import StopRequest
from roundkit.rounds.swarmflow import SwarmRound

_MOST_ENTRIES = 1000
Say = Callable[[str], None]


@dataclass(frozen=True)
class WorkerEnd:
    """How one attempt of a worker ended.

    Attributes:
        failure: Why the engine should try again; null when the worker came to an end of its own.
        notes: What is said about it.
    """

    failure: str | None = None
    notes: str = ""


class Worker(Protocol):
    """Makes one attempt of a lane: claims it, runs its agent, settles it, and leaves nothing of it behind."""

    def __call__(self, lane: FrozenLane) -> WorkerEnd:
        """Make the lane's next attempt.

        Raises:
            Refused: none may be made.
        """


def agent_worker(swarm: SwarmRound, *, stop: StopRequest, report: Say) -> Worker:
    """Return the worker that runs a lane's ``agent.command``, each in the lane's own boundary.

    Args:
        swarm: The round.
        stop: Asked before and while agents run.
        report: Takes one line for each thing that happens.
    """

    def work(lane: FrozenLane) -> WorkerEnd:
        if stop.is_set:
            raise refuse("stopped", f"nothing more is started in lane {lane.id}: launch was interrupted")
        run = AgentLane(swarm.folder, swarm.plan, lane, DRIVERS["command"]).run(stop=stop, report=report)
        ended = run.end_reason in {"exited", "budget"}
        return WorkerEnd(None if ended else f"ended: {run.end_reason}", run.detail)

    return work


def drive_swarmflow(swarm: SwarmRound, script: str, *, engine: Path, worker: Worker, report: Say) -> Reports:
    """Fill the lanes by the engine.

    A run that was cut off goes on from its journal: lanes that reported are not started again.

    Args:
        swarm: A launched round.
        script: Its script.
        engine: Folder of installed packages with the engine in it.
        worker: Makes one attempt, in a thread of its own.
        report: Takes one line for each thing that happens, from several threads.

    Returns:
        What was reported, held against the plan.

    Raises:
        Refused: ``engine-missing``, or ``swarmflow-running``: the round's engine runs already.
        ConfinementUnavailable: the host cannot confine the engine.
    """
    with hold_lock(swarm.folder.store / "swarmflow.lock", code="swarmflow-running", what="this round's team"):
        swarm.work.mkdir(exist_ok=True)
        atomic_write(swarm.work / "script.py", script.encode())
        (swarm.work / "script.py").chmod(0o644)
        last = max(lane.deadline_utc for lane in swarm.lanes)
        outcome = run_engine(
            _order(swarm, engine),
            _Team(swarm, worker, report).perform,
            deadline=Deadline.after(max(0.0, (last - now_utc()).total_seconds())),
            limits=swarm.plan.campaign.limits,
        )
    reports = sort_reports(outcome.result, [lane.id for lane in swarm.lanes])
    for line in _lines(reports, outcome.error):
        report(line)
    return reports


def _order(swarm: SwarmRound, engine: Path) -> EngineOrder:
    runtime = swarm.plan.runtime
    return EngineOrder(
        folder=engine,
        python=runtime.python,
        readable=tuple(map(Path, runtime.readable)),
        work=swarm.work,
        args=swarm.manifest.to_bytes().decode(),
        run_id=f"roundkit-{swarm.plan.digest()[:16]}",
        workers=len(swarm.lanes),
    )


def _lines(reports: Reports, error: str | None) -> Iterator[str]:
    if error is not None:
        yield f"the engine: {error}"
    for lane, row in reports.by_lane.items():
        yield f"{lane}: its worker reported {', '.join(row.tickets) or 'no ticket'}"
    for lane in reports.missing:
        yield f"{lane}: no report of its worker"
    for line in reports.strange:
        yield f"a report was left out: {line}"


@dataclass(frozen=True)
class _Team:
    """The coordinator's side of a team."""

    swarm: SwarmRound
    worker: Worker
    report: Say

    def perform(self, call: WorkerCall) -> WorkerReport:
        """Perform one call of a worker as its lane's next attempt."""
        lane = next((lane for lane in self.swarm.lanes if lane.id == call.lane), None)
        if lane is None:
            raise refuse("unknown-lane", f"the script fills {call.lane!r}, which is no lane of its round")
        lock = self.swarm.folder.drive_lock(lane.id)
        with hold_lock(lock, code="lane-driven", what=f"a driver of lane {lane.id}"):
            done = attempts.read_account(self.swarm.folder, lane.id).driven
            end = WorkerEnd(notes="driven before") if done else self.worker(lane)
        if end.failure is not None:
            self.report(f"{lane.id}: the attempt {end.failure}")
            raise WorkerFailed(f"an attempt of lane {lane.id} {end.failure}")
        return WorkerReport(lane=lane.id, tickets=_tickets(self.swarm, lane), notes=end.notes)


def _tickets(swarm: SwarmRound, lane: FrozenLane) -> tuple[str, ...]:
    """Return the tickets of what lies in a lane's outbox; intake alone decides what counts."""
    names = sorted(OutboxScan(swarm.folder.clone(lane.id)).read(_MOST_ENTRIES))
    return tuple(f"{swarm.plan.round_id}-{lane.id}-{name[:8]}" for name in names if _is_digest(name))


def _is_digest(name: str) -> bool:
    return len(name) == 64 and set(name) <= set("0123456789abcdef")
