"""Any other agent, started by the template that its lane's plan holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from roundkit.agents.contract import AgentCommand, AgentOutput, AgentResult, AgentTask, Preflight, StateReader
from roundkit.agents.drivers.common import (
    credentials,
    end_from_outside,
    file_lines,
    last_words,
    over_cap,
    parse_event,
    private_environment,
    readable,
)
from roundkit.agents.lane_boundary import HOME, HomeFile
from roundkit.agents.usage import RowUsage
from roundkit.core.errors import refuse
from roundkit.models.agent_run import AgentEnd, Usage
from roundkit.models.lane_command import CommandTemplate
from roundkit.models.round_plan import HarnessName

PROMPT_FILE = PurePosixPath("lane-prompt.md")
MCP_FILE = PurePosixPath("mcp.json")
_MOST_STATE_BYTES = 64 << 20
_MODEL = "{model}"
_THEN_SUBMIT = '"$@"; code=$?; .roundkit/round submit >&2; exit $code'


class Command:
    """The driver of harness ``command``."""

    name: HarnessName = "command"
    program = "agent"
    tool_limit_s = 60
    """Nobody knows an unknown harness's limit for one command; the shortest default among the presets' is
    longer."""
    wait_s = 50

    def preflight(self, task: AgentTask) -> Preflight:
        """Ask for what the template says."""
        template = template_of(task)
        return Preflight(version=template.version, help=template.help, flags=template.flags)

    def command(self, task: AgentTask) -> AgentCommand:
        """Return the template, filled in.

        Raises:
            Refused: ``command-missing``: the lane has no template.
        """
        template = template_of(task)
        words = _words(task)
        prompt = task.prompt.encode()
        by_file = template.prompt == "file"
        return AgentCommand(
            argv=(*_before(template), str(task.program), *_arguments(template, task, words)),
            stdin=b"" if by_file else prompt,
            env={
                **{name: str(HOME / place) for name, place in template.state.items()},
                **{name: filled(value, words) for name, value in template.environment.items()},
                **private_environment(task),
            },
            key_variables=task.agent.key_variables,
            hosts=task.agent.hosts,
            credentials=credentials(task),
            files=(*((HomeFile(prompt, PROMPT_FILE),) if by_file else ()), *_gateway_files(task)),
            readable=readable(task),
            git_read_only=not template.git_writable,
        )

    def meter(self, task: AgentTask) -> CommandMeter:
        """Return a meter that reads usage by the template's rule, and holds every cap that it can see."""
        return CommandMeter(task)


def template_of(task: AgentTask) -> CommandTemplate:
    """Return a lane's template.

    Raises:
        Refused: ``command-missing``.
    """
    if task.agent.command is None:
        raise refuse(
            "command-missing",
            f"lane {task.lane.id} has the harness command, and its plan does not say which",
            place=f"lanes.{task.lane.id}.agent",
            remedy="name a preset in `agent.preset`, or write `agent.command`, and prepare the round anew",
        )
    return task.agent.command


def _gateway_files(task: AgentTask) -> tuple[HomeFile, ...]:
    return () if task.gateway is None else (HomeFile(task.gateway.configuration(), MCP_FILE),)


def filled(argument: str, words: Mapping[str, str]) -> str:
    """Return a text with its placeholders filled in; braces around anything else stay."""
    for name, value in words.items():
        argument = argument.replace(f"{{{name}}}", value)
    return argument


def _words(task: AgentTask) -> dict[str, str]:
    return {
        "lane": task.lane.id,
        "clone": str(task.clone),
        "prompt_file": str(HOME / PROMPT_FILE),
        "mcp_config": str(HOME / MCP_FILE),
        "model": task.lane.model or "",
        "deadline_s": str(int(task.remaining_s)),
    }


def _before(template: CommandTemplate) -> tuple[str, ...]:
    return ("/bin/sh", "-c", _THEN_SUBMIT, "agent") if template.submit_at_end else ()


def _arguments(template: CommandTemplate, task: AgentTask, words: Mapping[str, str]) -> Iterator[str]:
    argv = list(template.argv)
    if task.lane.model is None and _MODEL in argv:
        position = argv.index(_MODEL)
        del argv[max(0, position - 1) : position + 1]
    yield from (filled(argument, words) for argument in argv)


@dataclass
class CommandMeter:
    """Reads rows of standard output, or of the agent's own files."""

    task: AgentTask

    def __post_init__(self) -> None:
        self._rule = template_of(self.task).usage
        self._rows = self._fresh()
        self._earlier: Counter[str] = Counter()

    def begin(self, state: StateReader) -> None:
        """Note the rows of earlier attempts, whose files stay in the lane's home: they count for those."""
        if self._rule.of != "stdout":
            self._earlier.update(self._file_lines(state))

    def read(self, line: str) -> AgentEnd | None:
        """Take one line; ``budget`` once it tells of a cap that was reached."""
        if self._rule.of != "stdout":
            return None
        self._rows.take(parse_event(line))
        return self._judge()

    def poll(self, state: StateReader) -> AgentEnd | None:
        """Read the agent's files anew, where they hold the rows."""
        if self._rule.of == "stdout":
            return None
        self._take_files(state)
        return self._judge()

    def told(self) -> Usage:
        """Return what the rows tell so far."""
        return self._rows.usage(partial=True)

    def result(self, output: AgentOutput) -> AgentResult:
        """Judge by how the process ended, and by a row that says that the provider failed."""
        if self._rule.of != "stdout":
            self._take_files(output.state)
        outside = end_from_outside(output)
        usage = self._rows.usage(partial=outside is not None)
        if outside is not None:
            return AgentResult(usage, *outside)
        if self._rows.failed:
            return AgentResult(usage, "provider-error", last_words(output))
        code = output.execution.exit_code
        return AgentResult(usage, "exited", f"exit code {code}: {last_words(output)}" if code else "")

    def _judge(self) -> AgentEnd | None:
        return "budget" if over_cap(self.task.caps, self.told()) else None

    def _take_files(self, state: StateReader) -> None:
        before, self._rows = self._rows, self._fresh()
        earlier = self._earlier.copy()
        for line in self._file_lines(state):
            if earlier[line] > 0:
                earlier[line] -= 1
            else:
                self._rows.take(parse_event(line))
        self._rows.keep(before)

    def _file_lines(self, state: StateReader) -> Iterator[str]:
        for content in state(self._rule.of, _MOST_STATE_BYTES):
            yield from file_lines(content)

    def _fresh(self) -> RowUsage:
        return RowUsage(self._rule, self.task.agent.prices)
