"""Tasks for drivers, without a round around them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from roundkit.agents.contract import AgentTask
from roundkit.models.lane_agent import LaneAgent
from roundkit.models.round_plan import FrozenLane, LaneBudget

RECORDED = Path(__file__).parent.parent / "agents" / "recorded"
CLONE = Path("/rounds/r01/lanes/L1")


def agent_task(
    agent: LaneAgent, *, model: str | None = None, caps: LaneBudget | None = None, **changes: Any
) -> AgentTask:
    """Make a task of lane L1 for an agent."""
    deadline = datetime(2030, 1, 1, tzinfo=UTC)
    lane = FrozenLane(
        id="L1",
        entry="E-L1",
        plane="algorithm",
        target_stage="L1",
        hypothesis="The stage of L1 can be faster.",
        globs=("knobs/L1.json",),
        harness="command",
        model=model,
        budget=LaneBudget(),
        attempt_worst_case=LaneBudget(),
        attempts=1,
        submission_cap=4,
        deadline_utc=deadline + timedelta(hours=1),
        changed_condition=None,
        replay=(),
        exploration_devices=(),
        agent=agent,
    )
    given: dict[str, Any] = {
        "round_id": "r01",
        "round_digest": "0" * 64,
        "lane": lane,
        "clone": CLONE,
        "prompt": "# Lane L1\n",
        "program": Path("/opt/agent/bin/agent"),
        "ordinal": 1,
        "caps": caps or LaneBudget(),
        "deadline_utc": deadline,
        "remaining_s": 600.7,
        **changes,
    }
    return AgentTask(**given)
