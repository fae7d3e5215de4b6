"""From a driver's command to what its agent is granted in the boundary, with its keys."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from roundkit.agents.contract import AgentCommand, AgentTask, Driver, DryRun
from roundkit.agents.lane_boundary import LaneFacts, LaneGrant, lane_grant
from roundkit.core.errors import refuse
from roundkit.host.confine import CpuSet, Limits, Network
from roundkit.models.lane_agent import LaneAgent


@dataclass(frozen=True)
class LanePlace:
    """Where an agent runs on this host, and what must stay out of its sight.

    Attributes:
        home: Folder that holds its private home.
        hidden: The round's folder and the campaign repository.
        log: Folder for what it says; made for the run.
        limits: What it may use.
        scratch: Where a task has a gateway and so no clone: folder for its working folder; null otherwise.
        cpus: Cores that it is bound to, while others are measured on; null for any.
    """

    home: Path
    hidden: tuple[Path, ...]
    log: Path
    limits: Limits
    scratch: Path | None = None
    cpus: CpuSet | None = None


def find_program(driver: Driver, agent: LaneAgent) -> Path:
    """Return an agent's program, free of links.

    Raises:
        Refused: ``program-missing``.
    """
    program = agent.command.program if agent.command is not None else driver.program
    named = agent.executable or shutil.which(program)
    found = Path(named).resolve() if named is not None else None
    if found is None or not found.is_file() or not os.access(found, os.X_OK):
        raise refuse(
            "program-missing",
            f"{agent.executable or program} is no program that can be run",
            place=f"{driver.name}: executable",
            remedy="install it, or name its absolute path in `agent.executable`",
        )
    return found


def key_values(command: AgentCommand, agent: LaneAgent, *, outside: Mapping[str, str]) -> dict[str, str]:
    """Return what an agent inherits by name: its keys, and the variables that the plan passes on.

    Args:
        command: What is started.
        agent: What the plan says about it.
        outside: The coordinator's environment.

    Raises:
        Refused: ``key-missing``: a key is not set.
    """
    return inherited(
        command.key_variables,
        agent.pass_variables,
        outside,
        outside_is="the environment of launch",
        place="agent.key_variables",
        alone="launch",
    )


def inherited(
    keys: Sequence[str],
    passed: Sequence[str],
    outside: Mapping[str, str],
    *,
    outside_is: str,
    place: str,
    alone: str,
) -> dict[str, str]:
    """Return variables by name: keys, which have to be set, and others where they are.

    Args:
        keys: Names of the keys.
        passed: Names of the others.
        outside: Where they are taken from.
        outside_is: What that is called.
        place: Where the plan names the keys.
        alone: For which command alone a key is to be set.

    Raises:
        Refused: ``key-missing``: a key is not set.
    """
    missing = [name for name in keys if not outside.get(name)]
    if missing:
        raise refuse(
            "key-missing",
            f"{outside_is} has no {', '.join(missing)}",
            place=place,
            remedy=f"set it for {alone} alone, e.g. by your password manager's `run` command",
        )
    return {name: outside[name] for name in (*passed, *keys) if name in outside}


def grant_of(
    task: AgentTask, command: AgentCommand, place: LanePlace, *, inherited: Mapping[str, str], network: bool
) -> LaneGrant:
    """Return what an agent is granted.

    Raises:
        Refused: a place would show what is hidden, or a host is none.
    """
    hosts = command.hosts if network else ()
    return lane_grant(
        LaneFacts(
            clone=place.scratch or task.clone,
            home=place.home,
            hidden=place.hidden,
            readable=(*command.readable, *(task.gateway.mounts if task.gateway is not None else ())),
            credentials=command.credentials,
            files=command.files,
            environment={**command.env, **inherited},
            network=Network.proxy(hosts) if hosts else Network.none(),
            git_read_only=command.git_read_only,
            scratch_at=None if place.scratch is None else task.clone,
        )
    )


def dry_run(driver: Driver, task: AgentTask, place: LanePlace) -> DryRun:
    """Return what would be started for a task. No key is looked at, and none has to be there.

    Raises:
        Refused: the lane asks for what is never granted.
    """
    command = driver.command(task)
    grant = grant_of(task, command, place, inherited={}, network=True)
    names = {*grant.env, *task.agent.pass_variables, *command.key_variables}
    shown = [str(mount.source) for mount in grant.readable]
    return DryRun(
        lane=task.lane.id,
        argv=command.argv,
        env_names=tuple(sorted(names)),
        hosts=grant.network.hosts,
        writable=tuple(str(mount.source) for mount in grant.writable),
        readable=(*shown, *(str(credential.source) for credential in command.credentials)),
    )
