"""Rounds by SwarmFlow: the script of a round, for roundkit to run or for somebody else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roundkit.agents.prompt import lane_prompt
from roundkit.agents.swarmflow.script import TRIES, WAIT_S, WorkerLane, render_script, worker_prompt
from roundkit.core.errors import Refused, refuse
from roundkit.core.files import atomic_write
from roundkit.models.attempts import AttemptBinding
from roundkit.models.lane import LaunchManifest
from roundkit.models.round_plan import FrozenLane, RoundPlan
from roundkit.rounds import attempts
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rules.attempts import capacity_refusal


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


def render_round(swarm: SwarmRound) -> str:
    """Return the SwarmFlow script of a round.

    Raises:
        Refused: ``swarmflow-lint``.
    """
    return render_script(swarm.manifest, [_worker_lane(swarm, lane) for lane in swarm.lanes])


def hand_over(swarm: SwarmRound, out: Path) -> tuple[AttemptBinding, ...]:
    """Write a round's script for somebody else to run, and claim one attempt a lane for it.

    Nobody tells the coordinator what that engine does. So each attempt is charged at the engine's number of
    tries times the lane's worst case, stays claimed, and roundkit starts no agent in the lane.

    Args:
        swarm: A launched round.
        out: The file to write.

    Raises:
        Refused: ``swarmflow-lint``, ``out-exists``, or a lane has no room, time or authority for that many
            tries. Where time or authority ends in between, the lanes claimed by then stay claimed.
    """
    if out.exists():
        raise refuse("out-exists", f"{out} exists", place="--hand-over", remedy="choose a new file")
    script = render_round(swarm)
    books = [attempts.read_account(swarm.folder, lane.id) for lane in swarm.lanes]
    refusals = [refusal for book in books if (refusal := capacity_refusal(book, tries=TRIES)) is not None]
    if refusals:
        raise Refused(refusals)
    claimed = tuple(attempts.claim_next(swarm.folder, lane.id, "script", tries=TRIES) for lane in swarm.lanes)
    atomic_write(out, script.encode())
    return claimed


def _worker_lane(swarm: SwarmRound, lane: FrozenLane) -> WorkerLane:
    clone = next(known.clone for known in swarm.manifest.lanes if known.id == lane.id)
    prompt = lane_prompt(
        lane,
        clone=Path(clone),
        protected_paths=swarm.plan.protected_paths,
        wait_s=WAIT_S,
        caps=lane.attempt_worst_case,
        deadline_utc=lane.deadline_utc,
    )
    return WorkerLane(
        id=lane.id,
        clone=clone,
        prompt=worker_prompt(lane.id, clone, prompt),
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
