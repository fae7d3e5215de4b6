"""What one shard's agent is granted: its own folders to write, its targets' inputs to read, its provider."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from roundkit.agents import lane_boundary
from roundkit.agents.grant import inherited
from roundkit.agents.lane_boundary import Credential, LaneGrant
from roundkit.agents.redaction import Redaction
from roundkit.evidence import wave_layout as names
from roundkit.host.confine import Mount, Network
from roundkit.models.wave_plan import ModelPool, WavePlan
from roundkit.waves.command import INPUT, INSIDE, STANDING_ENVIRONMENT, TOOLS, filled, standing_mounts
from roundkit.waves.folder import CampaignFolder

DRAFTS = INSIDE / "drafts"
INPUTS = INSIDE / "inputs"
REQUESTS = INSIDE / "requests"
LESSONS = INSIDE / "lessons"
HOME = "home"
"""Folder of a shard that is its agent's home while it runs."""
COPIES = f"{HOME}{lane_boundary.COPIES}"
"""Folder of a shard with its agent's credentials while it runs."""
EVENTS_VARIABLE = "ROUNDKIT_EVENTS"
"""Names the file that an agent appends its requests to."""


def inherited_values(plan: WavePlan, outside: Mapping[str, str]) -> dict[str, str]:
    """Return what draft agents inherit by name: their keys, and the variables that the plan passes on.

    Raises:
        Refused: ``key-missing``: a key is not set.
    """
    agent = plan.plan.draft.agent
    return inherited(
        agent.key_variables,
        agent.pass_variables,
        outside,
        outside_is="the drafter's environment",
        place="draft.agent.key_variables",
        alone="this command",
    )


def agent_network(plan: WavePlan) -> Network:
    """Return what draft agents reach: their hosts through the proxy, or nothing."""
    hosts = plan.plan.draft.agent.hosts
    return Network.proxy(hosts) if hosts else Network.none()


def agent_credentials(plan: WavePlan) -> tuple[Credential, ...]:
    """Return the credential files that draft agents are given copies of."""
    return tuple(
        Credential(Path(file.source), PurePosixPath(file.at)) for file in plan.plan.draft.agent.credentials
    )


def redaction_of(plan: WavePlan, inherited: Mapping[str, str]) -> Redaction:
    """Return what takes the agents' keys out of whatever they print."""
    agent = plan.plan.draft.agent
    contents = [
        Path(file.source).read_bytes() for file in agent.credentials if os.access(file.source, os.R_OK)
    ]
    return Redaction({name: inherited[name] for name in agent.key_variables}, contents)


def shard_argv(plan: WavePlan, model: str | None) -> tuple[str, ...]:
    """Return what one worker runs."""
    words = {
        "input": str(INPUT),
        "output": str(DRAFTS),
        "events": str(REQUESTS / names.REQUEST_EVENTS),
        "model": model or "",
    }
    return filled(plan.plan.draft.argv, plan, words)


def shard_grant(
    folder: CampaignFolder, shard: Path, pool: ModelPool, lessons: Path | None, inherited: Mapping[str, str]
) -> LaneGrant:
    """Return what the agent of a shard is granted.

    Args:
        folder: The campaign.
        shard: The shard's folder, with everything in it that the agent reads.
        pool: The pool that it belongs to.
        lessons: What earlier waves taught, if anything.
        inherited: Keys and variables of the drafter's own environment.
    """
    plan = folder.plan
    agent = plan.plan.draft.agent
    home = shard / HOME
    taught = () if lessons is None else (Mount(lessons, LESSONS),)
    return LaneGrant(
        cwd=TOOLS,
        writable=(
            Mount(shard / names.DRAFTS, DRAFTS),
            Mount(shard / names.REQUESTS, REQUESTS),
            Mount(home, lane_boundary.HOME),
        ),
        readable=(
            Mount(shard / names.TASK, INPUT),
            Mount(shard / names.INPUTS, INPUTS),
            *standing_mounts(folder),
            *(Mount(Path(name).resolve(), Path(name)) for name in agent.readable),
            *taught,
        ),
        credentials=agent_credentials(plan),
        files=(),
        env={
            **STANDING_ENVIRONMENT,
            **agent.environment,
            **pool.environment,
            **inherited,
            EVENTS_VARIABLE: str(REQUESTS / names.REQUEST_EVENTS),
            "HOME": str(lane_boundary.HOME),
            "TMPDIR": str(lane_boundary.HOME),
        },
        network=agent_network(plan),
        copies=home.with_name(COPIES),
    )
