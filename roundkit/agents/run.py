"""One attempt of one lane: its agent is started in the lane's boundary, followed, ended and recorded."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from roundkit.agents.agent_log import BoundedLog, Lines
from roundkit.agents.agent_state import state_reader
from roundkit.agents.contract import AgentCommand, AgentOutput, AgentResult, AgentTask, Driver
from roundkit.agents.grant import LanePlace, grant_of, key_values
from roundkit.agents.lane_boundary import LaneGrant, bound_lane
from roundkit.agents.left_behind import LastLook
from roundkit.agents.preflight import check_before
from roundkit.agents.redaction import Redaction
from roundkit.agents.watch import Halt, Watch, feed
from roundkit.core.canonical import digest_json
from roundkit.core.clock import Deadline, now_utc
from roundkit.host.confine import Execution
from roundkit.models.agent_run import AgentRun, LogDigest


@dataclass(frozen=True)
class ReadyAgent:
    """An agent that passed its preflight, with everything that starting it takes.

    Attributes:
        driver: Its driver.
        task: Its task.
        command: What is started.
        place: Where.
        inherited: Its keys and the variables that it inherits, with their values.
        version: What its program answered; null where it has none.
    """

    driver: Driver
    task: AgentTask
    command: AgentCommand
    place: LanePlace
    inherited: Mapping[str, str]
    version: str | None


def make_ready(driver: Driver, task: AgentTask, place: LanePlace) -> ReadyAgent:
    """Check everything that has to hold before an attempt is reserved.

    Raises:
        Refused: ``preflight``, ``key-missing``, or what the lane asks for is never granted.
        ConfinementUnavailable: the host cannot build the boundary.
    """
    command = driver.command(task)
    inherited = key_values(command, task.agent, outside=os.environ)
    version = check_before(driver, task, command, place)
    return ReadyAgent(driver, task, command, place, inherited, version)


def redaction_of(ready: ReadyAgent) -> Redaction:
    """Return what takes an agent's keys out of whatever comes from it."""
    keys = {name: ready.inherited[name] for name in ready.command.key_variables}
    return Redaction(keys, _contents(ready.command))


def run_agent(ready: ReadyAgent, *, deadline: Deadline, halt: Halt) -> AgentRun:
    """Run a lane's agent once, to its end, and return the record of it.

    Whoever calls holds the claim of the attempt. Once this returns, nothing of the agent lives.

    Args:
        ready: The agent.
        deadline: When everything of it is killed.
        halt: Asked every second whether it must end.

    Raises:
        Refused: the lane has put something where a grant belongs.
        ConfinementUnavailable: the host cannot build the boundary, or a process does not die.
    """
    task, place = ready.task, ready.place
    redaction = redaction_of(ready)
    state = state_reader(place.home, redaction)
    meter = ready.driver.meter(task)
    meter.begin(state)
    shutil.rmtree(place.log, ignore_errors=True)
    place.log.mkdir(mode=0o700, parents=True)
    log = BoundedLog(place.log / "stdout", place.limits.output_bytes)
    watch = Watch(meter, Lines(redaction), log, state, halt, place.limits.output_kill_bytes)
    grant = grant_of(task, ready.command, place, inherited=ready.inherited, network=True)
    look = LastLook()
    started = now_utc()
    try:
        execution = _execute(ready, look.around(ready.command.argv), grant, watch, deadline)
    finally:
        stdout = log.close()
    ended = now_utc()
    execution, lost = look.told(execution)
    execution = execution.model_copy(update={"stderr_tail": redaction.cut_text(execution.stderr_tail)})
    result = meter.result(AgentOutput(execution, watch.stopped, state, spoke=stdout.bytes > 0))
    return AgentRun(
        argv_sha256=digest_json(list(ready.command.argv)),
        cli_version=ready.version,
        started_utc=started,
        ended_utc=ended,
        exit_code=execution.exit_code,
        end_reason=result.end_reason,
        detail=redaction.any_case(_detail(result, execution, lost)),
        usage=result.usage,
        denied=result.denied,
        stdout=stdout,
        stderr=_write_stderr(place.log / "stderr", execution),
    )


def _execute(
    ready: ReadyAgent, argv: Sequence[str], grant: LaneGrant, watch: Watch, deadline: Deadline
) -> Execution:
    """Run the command with its prompt on standard input, which is then closed."""
    input_read, input_write = os.pipe2(os.O_CLOEXEC)
    output_read, output_write = os.pipe2(os.O_CLOEXEC)
    feeder = threading.Thread(target=feed, args=(ready.command.stdin, input_write), name="agent-input")
    with watch.following(output_read):
        feeder.start()
        try:
            return bound_lane(
                argv,
                grant,
                deadline=deadline,
                limits=ready.place.limits,
                cpus=ready.place.cpus,
                stdin=input_read,
                stdout=output_write,
                stop=watch.stop_read,
            )
        finally:
            feeder.join()


def _contents(command: AgentCommand) -> list[bytes]:
    """Return what the credential files hold; one that cannot be read is refused when it is granted."""
    files = [credential.source for credential in command.credentials]
    return [file.read_bytes() for file in files if file.is_file()]


def _detail(result: AgentResult, execution: Execution, lost: str) -> str:
    refused = sorted({
        f"{row.host}:{row.port}"
        for row in execution.destinations
        if row.outcome != "allowed" and row.host is not None
    })  # fmt: skip
    blocked = f"not reached: {', '.join(refused[:5])}" if refused else ""
    return "; ".join(filter(None, (result.detail, blocked, lost)))


def _write_stderr(path: Path, execution: Execution) -> LogDigest:
    """Keep what the boundary kept of standard error; its digest is of all that came, keys included."""
    kept = execution.stderr_tail.encode("utf-8", "replace")
    path.write_bytes(kept)
    return LogDigest(
        sha256=execution.stderr_sha256,
        bytes=execution.stderr_bytes,
        kept_bytes=min(len(kept), execution.stderr_bytes),
    )
