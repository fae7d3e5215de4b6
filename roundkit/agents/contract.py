"""What a driver is: it turns a lane's task into a command, and the command's output into usage and an end.

A driver starts nothing and holds no key. ``roundkit.agents.run`` does the starting, in the lane's boundary,
and calls the driver in this order: ``preflight``, ``command``, then one ``meter`` that reads the output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from roundkit.agents.lane_boundary import Credential, HomeFile
from roundkit.core.canonical import canonical_bytes
from roundkit.host.confine import Execution, Mount
from roundkit.models.agent_run import AgentEnd, Usage
from roundkit.models.lane_agent import LaneAgent
from roundkit.models.round_plan import HarnessName, LaneBudget

GATEWAY_NAME = "task"
"""What agents call the server of a :class:`Gateway`."""


class Assignment(Protocol):
    """What an agent is set to: a lane of a round, or a tuple of a pilot."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def model(self) -> str | None:
        """The agent's model, where there is one."""

    @property
    def globs(self) -> tuple[str, ...]:
        """The paths of the clone that it may change."""

    @property
    def agent(self) -> LaneAgent | None:
        """What the plan says about the agent."""


@dataclass(frozen=True)
class Gateway:
    """A local server of the Model Context Protocol that is an agent's one way to its task's files.

    Attributes:
        argv: What the agent's harness starts to speak with it, on standard input and output.
        mounts: What that needs inside the boundary.
    """

    argv: tuple[str, ...]
    mounts: tuple[Mount, ...]

    def configuration(self) -> bytes:
        """Return the file, in the form that most harnesses read, which names the server."""
        server = {"command": self.argv[0], "args": list(self.argv[1:])}
        return canonical_bytes({"mcpServers": {GATEWAY_NAME: server}})


@dataclass(frozen=True)
class AgentTask:
    """Everything that a driver may know about one attempt of one lane.

    Attributes:
        round_id: The round, or the pilot.
        round_digest: Digest of its frozen plan.
        lane: The lane or tuple, from the frozen plan.
        clone: Its clone, the agent's working folder, as it is named inside the boundary.
        prompt: The lane prompt, as it goes to the agent.
        program: The agent's program, absolute and free of links; the same path inside.
        ordinal: Number of the attempt within its lane, from 1.
        caps: What this attempt may use at worst; null is uncapped.
        deadline_utc: When it is killed.
        remaining_s: Seconds from the making of this task until then.
        gateway: Where the task's files are out of the agent's sight, its way to them. The working folder is
            then a scratch of its own, with neither git nor a wrapper in it.
    """

    round_id: str
    round_digest: str
    lane: Assignment
    clone: Path
    prompt: str
    program: Path
    ordinal: int
    caps: LaneBudget
    deadline_utc: datetime
    remaining_s: float
    gateway: Gateway | None = None

    @property
    def agent(self) -> LaneAgent:
        """What the plan says about the lane's agent; all defaults where it says nothing."""
        return self.lane.agent or LaneAgent()


@dataclass(frozen=True)
class Preflight:
    """What is asked of a program before anything is reserved. Each question runs confined, without network.

    Attributes:
        version: Arguments that print its version; null where it has none.
        help: Arguments that print its flags; null where it has none.
        flags: Words that must stand in that help.
    """

    version: tuple[str, ...] | None = ("--version",)
    help: tuple[str, ...] | None = ("--help",)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class AgentCommand:
    """What is started. It holds no key: keys are named, and join the environment as the agent starts.

    Attributes:
        argv: Program and arguments.
        stdin: What is written to its standard input, which is then closed.
        env: Its variables besides ``HOME``, ``TMPDIR`` and those of the proxy.
        key_variables: Variables whose values are taken from the coordinator's environment.
        hosts: ``host:port`` pairs that it reaches through the proxy; none: it has no network.
        credentials: Files of the owner's, copied read-only into its home for this run.
        files: Files that the driver writes, read-only in its home for this run.
        readable: What else it reads.
        git_read_only: Whether ``.git`` of the clone is.
    """

    argv: tuple[str, ...]
    stdin: bytes
    env: Mapping[str, str]
    key_variables: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    credentials: tuple[Credential, ...] = ()
    files: tuple[HomeFile, ...] = ()
    readable: tuple[Mount, ...] = ()
    git_read_only: bool = True


StateReader = Callable[[str, int], list[bytes]]
"""Takes a glob below the agent's home and a size in bytes; returns the content of every regular file there,
oldest name first, as long as all of them together are no larger. Links are not followed: an agent wrote these
files."""


@dataclass(frozen=True)
class AgentOutput:
    """What is left of a run once nothing of it lives.

    Attributes:
        execution: How it ended, as its boundary saw it.
        stopped: Why roundkit ended it; null when it ended by itself.
        state: Reads what it left in its home.
        spoke: Whether anything came on its standard output.
    """

    execution: Execution
    stopped: AgentEnd | None
    state: StateReader
    spoke: bool = False


@dataclass(frozen=True)
class AgentResult:
    """What a driver makes of an output.

    Attributes:
        usage: What was used; unknown is null.
        end_reason: Why it ended.
        detail: One line about the end, e.g. what the provider answered.
        denied: Permissions that the tool refused; null where it does not say.
    """

    usage: Usage
    end_reason: AgentEnd
    detail: str = ""
    denied: int | None = None


class Meter(Protocol):
    """Reads one run's output as it comes. Lines are an agent's: a meter never raises on what they hold."""

    def begin(self, state: StateReader) -> None:
        """Look, before the agent starts, at what earlier attempts left: it is no part of this run."""

    def read(self, line: str) -> AgentEnd | None:
        """Take one line of standard output, without its end; return why the run must stop, or None."""

    def poll(self, state: StateReader) -> AgentEnd | None:
        """Look at the agent's own files, every few seconds; return why the run must stop, or None."""

    def told(self) -> Usage:
        """Return what was told so far; an audit reads an archived stream again and asks for this."""

    def result(self, output: AgentOutput) -> AgentResult:
        """Say what the whole run used and why it ended."""


class Driver(Protocol):
    """One kind of agent.

    Attributes:
        name: The harness, as plans name it.
        program: File name of its program, looked up on the PATH where the plan names none.
        tool_limit_s: Seconds after which the harness ends one command of its agent by itself.
        wait_s: The largest ``status --wait`` that the prompt allows; under ``tool_limit_s``.
    """

    name: HarnessName
    program: str
    tool_limit_s: int
    wait_s: int

    def preflight(self, task: AgentTask) -> Preflight:
        """Return what has to hold before an attempt is reserved."""

    def command(self, task: AgentTask) -> AgentCommand:
        """Return what is started.

        Raises:
            Refused: the lane asks for something that this driver cannot do.
        """

    def meter(self, task: AgentTask) -> Meter:
        """Return a new meter for one run."""


@dataclass(frozen=True)
class DryRun:
    """What would be started, for people to read.

    Attributes:
        lane: The lane's id.
        argv: Program and arguments.
        env_names: Names of its variables, keys among them.
        hosts: What it may reach.
        writable: Places on the host that it may change.
        readable: Places on the host that it may read, besides the system's programs.
    """

    lane: str
    argv: tuple[str, ...]
    env_names: tuple[str, ...]
    hosts: tuple[str, ...]
    writable: tuple[str, ...]
    readable: tuple[str, ...] = field(default=())
