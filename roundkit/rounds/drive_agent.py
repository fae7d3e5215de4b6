"""One lane, filled by an agent: checked, reserved, claimed, run to its end, settled or left charged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from roundkit.agents.contract import AgentTask, Driver, DryRun
from roundkit.agents.earlier_agent import await_nobody
from roundkit.agents.grant import LanePlace, dry_run, find_program
from roundkit.agents.prompt import lane_prompt
from roundkit.agents.run import ReadyAgent, make_ready, run_agent
from roundkit.core.clock import Deadline, now_utc
from roundkit.measure.free_cores import free_cores
from roundkit.models.agent_run import AgentEnd, AgentRun
from roundkit.models.attempts import AttemptBinding
from roundkit.models.lane_agent import LaneAgent
from roundkit.models.round_plan import FrozenLane, RoundPlan
from roundkit.rounds import attempts
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.stopping import StopRequest
from roundkit.rules.agent_cost import cost_line, cost_of
from roundkit.rules.attempts import UNSETTLED_ENDS, last_moment
from roundkit.store import open_store

Report = Callable[[str], None]


@dataclass(frozen=True)
class AgentLane:
    """One lane and the driver that fills it."""

    folder: RoundFolder
    plan: RoundPlan
    lane: FrozenLane
    driver: Driver

    def task(self) -> AgentTask:
        """Return the lane's next attempt as its driver sees it.

        Raises:
            Refused: ``program-missing``.
        """
        lane, agent, now = self.lane, self.lane.agent or LaneAgent(), now_utc()
        ends = last_moment(self.plan, lane, now)
        clone = self.folder.clone(lane.id).resolve()
        prompt = lane_prompt(
            lane,
            clone=clone,
            protected_paths=self.plan.protected_paths,
            wait_s=agent.wait_s or self.driver.wait_s,
            caps=lane.attempt_worst_case,
            deadline_utc=ends,
        )
        return AgentTask(
            round_id=self.plan.round_id,
            round_digest=self.plan.digest(),
            lane=lane,
            clone=clone,
            prompt=prompt,
            program=find_program(self.driver, agent),
            ordinal=self._ordinal(),
            caps=lane.attempt_worst_case,
            deadline_utc=ends,
            remaining_s=max(0.0, (ends - now).total_seconds()),
        )

    def place(self, ordinal: int) -> LanePlace:
        """Return where an attempt runs, and where its log goes."""
        agent = self.lane.agent or LaneAgent()
        return LanePlace(
            home=self.folder.homes.resolve() / self.lane.id,
            hidden=(self.folder.root, self.folder.lanes, Path(self.plan.repository)),
            log=self.folder.attempt_log(self.lane.id, ordinal),
            limits=agent.limits or self.plan.campaign.limits,
            cpus=free_cores(self.plan.device_sets, pinned=self.plan.cpu_pinning),
        )

    def show(self) -> DryRun:
        """Return what would be started.

        Raises:
            Refused: ``program-missing``, or the lane asks for what is never granted.
        """
        task = self.task()
        return dry_run(self.driver, task, self.place(task.ordinal))

    def run(self, *, stop: StopRequest, report: Report) -> AgentRun:
        """Make one attempt. Whatever breaks after the claim leaves it claimed, and charged.

        Raises:
            Refused: nothing was started: the lane has no attempt left, no authority or no time, its preflight
                failed, or another agent works in it.
            ConfinementUnavailable: the host cannot build the boundary.
        """
        attempts.check_room(self.folder, self.lane.id)
        await_nobody(self.folder.clone(self.lane.id).resolve())
        task = self.task()
        self.folder.homes.mkdir(mode=0o711, exist_ok=True)
        ready = make_ready(self.driver, task, self.place(task.ordinal))
        binding = attempts.claim_next(self.folder, self.lane.id, self.driver.name)
        report(f"{self.lane.id}: attempt {binding.ordinal} started, {ready.version or self.driver.name}")
        run = self._executed(ready, stop)
        self._record(binding, run)
        return run

    def cost(self) -> str:
        """Return the lane's cost line."""
        return cost_line(attempts.read_account(self.folder, self.lane.id))

    def _ordinal(self) -> int:
        records = attempts.read_account(self.folder, self.lane.id).records
        return next((r.binding.ordinal for r in records if r.phase == "reserved"), len(records) + 1)

    def _executed(self, ready: ReadyAgent, stop: StopRequest) -> AgentRun:
        def halt() -> AgentEnd | None:
            return "killed" if stop.is_set or self._ended_by_owner() else None

        now = now_utc()
        left_s = (last_moment(self.plan, self.lane, now) - now).total_seconds()
        return run_agent(ready, deadline=Deadline.after(max(0.0, left_s)), halt=halt)

    def _ended_by_owner(self) -> bool:
        # A store that cannot be read for a moment is no reason to end an agent.
        with suppress(sqlite3.OperationalError), open_store(self.folder.database, read_only=True) as store:
            return self.lane.id in store.control.stopped_lanes() or bool(store.steps.names())
        return False

    def _record(self, binding: AttemptBinding, run: AgentRun) -> None:
        if run.end_reason in UNSETTLED_ENDS:
            attempts.record_run(self.folder, binding, run)
            return
        wall_s = ceil((run.ended_utc - run.started_utc).total_seconds())
        attempts.settle(self.folder, binding, cost_of(run, wall_s), run=run)
