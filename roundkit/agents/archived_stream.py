"""What an agent's archived stream tells of its usage, read again by its driver's own meter."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from roundkit.agents.agent_log import MOST_LINE_BYTES
from roundkit.agents.contract import AgentTask
from roundkit.agents.drivers import DRIVERS
from roundkit.models.agent_run import Usage
from roundkit.models.lane_agent import LaneAgent
from roundkit.models.round_plan import HarnessName, LaneBudget


@dataclass(frozen=True)
class StreamUsage:
    """What a whole stream tells.

    Attributes:
        usage: What was used, as far as the stream says.
        is_all: Whether nothing else was read while the agent lived. Some tools know more in files of their
            own, which no archive holds: a record says no less than their stream then.
    """

    usage: Usage
    is_all: bool


@dataclass(frozen=True)
class _Nobody:
    """What a meter needs of an assignment."""

    agent: LaneAgent
    id: str = "archived"
    model: str | None = None
    globs: tuple[str, ...] = ()


def stream_usage(harness: HarnessName, agent: LaneAgent, stream: bytes) -> StreamUsage | None:
    """Return what an agent's whole standard output tells of its usage.

    Args:
        harness: What it was started by.
        agent: What the plan says about it.
        stream: Its standard output as it was archived, every byte.

    Returns:
        The usage; null where a line is so long that it was read in pieces, which nobody can tell any more.

    Raises:
        Refused: ``command-missing``: the plan does not say how it was started.
        KeyError: there is no such harness.
    """
    lines = stream.split(b"\n")
    if max(map(len, lines)) > MOST_LINE_BYTES:
        return None
    task = AgentTask(
        round_id="", round_digest="", lane=_Nobody(agent), clone=Path("/"), prompt="", program=Path("/"),
        ordinal=1, caps=LaneBudget(), deadline_utc=datetime.max.replace(tzinfo=UTC), remaining_s=0.0,
    )  # fmt: skip
    meter = DRIVERS[harness].meter(task)
    for line in lines if lines[-1] else lines[:-1]:
        meter.read(line.decode("utf-8", "replace"))
    rule = agent.command.usage if harness == "command" and agent.command is not None else None
    return StreamUsage(meter.told(), is_all=rule is not None and rule.of == "stdout")
