"""Rounds by SwarmFlow: the script of a round, and its lanes filled by the engine, one attempt a call."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

from roundkit.agents.swarmflow.engine import EngineOrder, WorkerCall, WorkerFailed, run_engine
from roundkit.agents.swarmflow.reports import Reports, WorkerReport, sort_reports
from roundkit.agents.swarmflow.script import WAIT_S, WorkerLane, render_script, worker_prompt
from roundkit.core.clock import Deadline, now_utc
from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write
from roundkit.models.attempts import AttemptBinding, Cost
from roundkit.models.lane import LaunchManifest
from roundkit.models.round_plan import FrozenLane, RoundPlan
from roundkit.rounds import attempts
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.locks import hold_lock
from roundkit.rules.attempts import open_reservation, remaining_s

_MOST_ENTRIES = 1000


@dataclass(frozen=True)
class WorkerEnd:
    """How one attempt of a worker ended.

    Attributes:
        actual: What it cost; null where nobody knows, so that the attempt stays claimed.
        failure: Why the engine should try again; null when the worker came to its end.
        notes: What it said.
    """

    actual: Cost | None
    failure: str | None = None
    notes: str = ""


class Worker(Protocol):
    """Runs one attempt of a lane's agent, and returns once nothing of it is left."""

    def __call__(self, lane: FrozenLane, binding: AttemptBinding, deadline: Deadline) -> WorkerEnd:
        """Run the attempt that a binding names, until the deadline at most."""


@dataclass(frozen=True)
class SwarmRound:
    """A launched round as SwarmFlow fills it.

    Attributes:
        folder: The round.
        plan: Its plan.
        manifest: Its ``launch.json``.
        lanes: The lanes with the harness ``swarmflow``.
    """

    folder: RoundFolder
    plan: RoundPlan
    manifest: LaunchManifest
    lanes: tuple[FrozenLane, ...]

    @property
    def work(self) -> Path:
        """Where script and journal lie, out of every lane's reach."""
        return self.folder.store / "swarmflow"


def swarm_round(folder: RoundFolder) -> SwarmRound:
    """Read a launched round.

    Raises:
        Refused: ``not-launched``; or ``no-swarmflow-lane``: no lane has that harness.
    """
    plan = read_plan(folder)
    lanes = tuple(lane for lane in plan.lanes if lane.harness == "swarmflow")
    if not lanes:
        raise refuse(
            "no-swarmflow-lane",
            "no lane of this round has the harness swarmflow",
            place="round-plan.json: lanes",
            remedy="set `harness: swarmflow` for the lanes that a team fills, in a new round",
        )
    if not folder.launch_file.is_file():
        raise refuse(
            "not-launched",
            "this round has no launch.json yet",
            place=str(folder.launch_file),
            remedy="run `roundkit launch ROUND_DIR` first",
        )
    manifest = LaunchManifest.from_bytes(folder.launch_file.read_bytes(), place="launch.json")
    return SwarmRound(folder, plan, manifest, lanes)


def render_round(swarm: SwarmRound, prompt: Callable[[FrozenLane, int], str]) -> str:
    """Return the SwarmFlow script of a round.

    Args:
        swarm: The round.
        prompt: Returns a lane's prompt for an agent whose commands may wait so many seconds.

    Raises:
        Refused: ``swarmflow-lint``.
    """
    return render_script(swarm.manifest, [_worker_lane(swarm, lane, prompt) for lane in swarm.lanes])


def _worker_lane(swarm: SwarmRound, lane: FrozenLane, prompt: Callable[[FrozenLane, int], str]) -> WorkerLane:
    clone = next(known.clone for known in swarm.manifest.lanes if known.id == lane.id)
    return WorkerLane(
        id=lane.id,
        clone=clone,
        prompt=worker_prompt(lane.id, clone, prompt(lane, WAIT_S)),
        timeout_s=_timeout_s(swarm.plan, lane),
        model=lane.model,
        tokens=lane.budget.tokens,
    )


def _timeout_s(plan: RoundPlan, lane: FrozenLane) -> int:
    """Return the seconds of one try: what an attempt may take, else what the frozen plan leaves the lane."""
    most = lane.attempt_worst_case.wall_s
    if most is not None:
        return most
    return max(1, int((lane.deadline_utc - plan.frozen_utc).total_seconds()))


def drive_swarmflow(
    swarm: SwarmRound,
    script: str,
    *,
    engine: Path,
    worker: Worker,
    report: Callable[[str], None],
) -> Reports:
    """Fill the lanes by the engine, each call of a worker as one attempt of its lane.

    A run that was cut off goes on from its journal: lanes that reported are not started again.

    Args:
        swarm: A launched round.
        script: From :func:`render_round`.
        engine: Folder of installed packages with the engine in it.
        worker: Runs one attempt.
        report: Takes one line for each thing that happens.

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
        team = _Team(swarm, worker, report, f"swarmflow-{uuid.uuid4().hex}")
        last = max(lane.deadline_utc for lane in swarm.lanes)
        outcome = run_engine(
            _order(swarm, engine),
            team.perform,
            deadline=Deadline.after(max(0.0, (last - now_utc()).total_seconds())),
            limits=swarm.plan.campaign.limits,
        )
    if outcome.error is not None:
        report(f"the engine: {outcome.error}")
    reports = sort_reports(outcome.result, [lane.id for lane in swarm.lanes])
    for line in _lines(reports):
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


def _lines(reports: Reports) -> Sequence[str]:
    told = [f"{lane}: reported {len(row.tickets)} tickets" for lane, row in reports.by_lane.items()]
    missing = [f"{lane}: no report of its worker" for lane in reports.missing]
    return (*told, *missing, *(f"a report was left out: {line}" for line in reports.strange))


@dataclass(frozen=True)
class _Team:
    """The coordinator's side of a team: each call is reserved, claimed, run and settled."""

    swarm: SwarmRound
    worker: Worker
    report: Callable[[str], None]
    workflow_run: str

    def perform(self, call: WorkerCall) -> WorkerReport:
        """Perform one call of a worker as its lane's next attempt."""
        lane = next((lane for lane in self.swarm.lanes if lane.id == call.lane), None)
        if lane is None:
            raise refuse("unknown-lane", f"the script fills {call.lane!r}, which is no lane of its round")
        folder = self.swarm.folder
        lock = folder.store / f"drive-{lane.id}.lock"
        with hold_lock(lock, code="lane-driven", what=f"a driver of lane {lane.id}"):
            binding = self._claimed(lane)
            self.report(f"{lane.id}: attempt {binding.ordinal}")
            end = self.worker(lane, binding, Deadline.after(remaining_s(lane, now_utc())))
            if end.actual is not None:
                attempts.settle(folder, binding, end.actual)
        if end.failure is not None:
            self.report(f"{lane.id}: attempt {binding.ordinal} {end.failure}")
            raise WorkerFailed(f"attempt {binding.ordinal} of lane {lane.id} {end.failure}")
        return WorkerReport(lane=lane.id, tickets=_tickets(self.swarm, lane), notes=end.notes)

    def _claimed(self, lane: FrozenLane) -> AttemptBinding:
        folder = self.swarm.folder
        binding = open_reservation(attempts.read_account(folder, lane.id))
        if binding is None:
            binding = attempts.propose(folder, lane.id, self.workflow_run)
            attempts.reserve(folder, binding)
        return attempts.claim(folder, binding).binding


def _tickets(swarm: SwarmRound, lane: FrozenLane) -> tuple[str, ...]:
    """Return the tickets of what lies in a lane's outbox; intake alone decides what counts."""
    outbox = swarm.folder.clone(lane.id) / ".roundkit" / "outbox"
    names = sorted(path.name for path in islice(outbox.iterdir(), _MOST_ENTRIES))
    return tuple(f"{swarm.plan.round_id}-{lane.id}-{name[:8]}" for name in names if _is_digest(name))


def _is_digest(name: str) -> bool:
    return len(name) == 64 and set(name) <= set("0123456789abcdef")
