"""Claude Code: one ``claude -p`` a lane, its event stream read as it comes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path, PurePosixPath
from typing import Any

from roundkit.agents.contract import (
    GATEWAY_NAME,
    AgentCommand,
    AgentOutput,
    AgentResult,
    AgentTask,
    Preflight,
    StateReader,
)
from roundkit.agents.drivers.common import (
    LastWord,
    added,
    count,
    credentials,
    end_from_outside,
    events,
    grown,
    is_session_id,
    larger,
    last_words,
    mapping,
    micro_usd,
    most,
    over_cap,
    parse_event,
    private_environment,
    readable,
    text,
)
from roundkit.agents.lane_boundary import HOME, HomeFile
from roundkit.models.agent_run import AgentEnd, TokenCounts, Usage
from roundkit.models.lane_agent import ListPrice
from roundkit.models.round_plan import HarnessName

_TOOL_LIMIT_S = 120
_TOOL_MOST_S = 600
_READING = ("Read", "Glob", "Grep")
_CAP_SUBTYPES = frozenset({"error_max_turns", "error_max_budget_usd"})
_UNDOCUMENTED = frozenset({"--max-turns"})
_MICRO = 1_000_000
_CONFIG = ".claude"
_MCP_FILE = PurePosixPath("mcp.json")
_MADE_UP = "<synthetic>"
_MOST_TRANSCRIPT_BYTES = 64 << 20


class Claude:
    """The driver of harness ``claude``."""

    name: HarnessName = "claude"
    program = "claude"
    tool_limit_s = _TOOL_LIMIT_S
    wait_s = 100

    def preflight(self, task: AgentTask) -> Preflight:
        """Ask for the version and for every flag that :meth:`command` uses and the help shows."""
        words = [word for word in self.command(task).argv[1:] if word.startswith("--")]
        return Preflight(flags=tuple(word for word in words if word not in _UNDOCUMENTED))

    def command(self, task: AgentTask) -> AgentCommand:
        """Return ``claude -p`` with the lane's permissions and caps; the prompt goes to standard input."""
        return AgentCommand(
            argv=(str(task.program), *_arguments(task)),
            stdin=task.prompt.encode(),
            env={
                "CLAUDE_CONFIG_DIR": str(HOME / _CONFIG),
                "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_MAX_RETRIES": "5",
                "API_TIMEOUT_MS": "600000",
                "BASH_DEFAULT_TIMEOUT_MS": str(_TOOL_LIMIT_S * 1000),
                "BASH_MAX_TIMEOUT_MS": str(_TOOL_MOST_S * 1000),
                **private_environment(task),
            },
            key_variables=task.agent.key_variables,
            hosts=task.agent.hosts,
            credentials=credentials(task),
            files=() if task.gateway is None else (HomeFile(task.gateway.configuration(), _MCP_FILE),),
            readable=readable(task),
        )

    def meter(self, task: AgentTask) -> ClaudeMeter:
        """Return a meter that holds the caps which the tool does not know, and all of them once more."""
        return ClaudeMeter(task)


def _arguments(task: AgentTask) -> Iterator[str]:
    yield from ("-p", "--output-format", "stream-json", "--verbose")
    if task.lane.model is not None:
        yield from ("--model", task.lane.model)
    if task.agent.effort is not None:
        yield from ("--effort", task.agent.effort)
    if task.caps.turns is not None:
        yield from ("--max-turns", str(task.caps.turns))
    if task.caps.micro_usd is not None:
        yield from ("--max-budget-usd", f"{task.caps.micro_usd / _MICRO:.6f}")
    yield from ("--permission-mode", "dontAsk", "--strict-mcp-config", "--setting-sources", "")
    if task.gateway is not None:
        # No tool of its own: with one of them gone, a model takes the next.
        yield from ("--mcp-config", str(HOME / _MCP_FILE), "--tools", "")
    # Takes all that follows, so that nothing may follow.
    yield from ("--allowedTools", *_permissions(task))


def _permissions(task: AgentTask) -> Iterator[str]:
    """Yield what the agent may do unasked: read, edit what the lane's globs match, call the wrapper.

    A rule for a command holds for that way of writing it alone, so each way is listed.
    """
    if task.gateway is not None:
        yield f"mcp__{GATEWAY_NAME}"
        yield from task.agent.allowed_tools
        return
    yield from _READING
    for tool in ("Edit", "Write"):
        for glob in task.lane.globs:
            # Two slashes: from the root of the file system.
            yield f"{tool}(/{task.clone}/{_permission_glob(glob)})"
    for wrapper in wrapper_forms(task.clone):
        yield f"Bash({wrapper} submit)"
        yield f"Bash({wrapper} status)"
        yield f"Bash({wrapper} status *)"
    yield from task.agent.allowed_tools


def _permission_glob(glob: str) -> str:
    """Return a lane's glob in the tool's form, which knows no braces. Intake judges by the lane's own."""
    if "{" in glob:
        return f"{glob.partition('{')[0].rpartition('/')[0]}/**".lstrip("/")
    return f"{glob}**" if glob.endswith("/") else glob


def wrapper_forms(clone: Path) -> tuple[str, ...]:
    """Return the ways in which an agent may write the wrapper's name."""
    own = ".roundkit/round"
    return (own, f"./{own}", str(clone / own), f"python3 {own}", f"python3 {clone / own}")


@dataclass
class ClaudeMeter:
    """Reads the event stream of one run.

    A message comes in several events, with the usage as it began. Its whole usage stands in the transcript,
    so that the larger count of each class holds. The ``result`` event at the end replaces what was added up.
    """

    task: AgentTask
    _messages: dict[str, TokenCounts] = field(default_factory=dict)
    _tokens: TokenCounts = field(default_factory=TokenCounts)
    _turns: set[str] = field(default_factory=set)
    _session: str | None = None
    _model: str | None = None
    _result: dict[str, Any] | None = None
    _cost: int | None = None
    _done: LastWord = field(default_factory=LastWord)

    def begin(self, state: StateReader) -> None:
        """Leave what lies there: a transcript is named after its session."""

    def read(self, line: str) -> AgentEnd | None:
        """Take one event; ``budget`` once an answer has reached a cap that the tool itself does not hold."""
        event = parse_event(line)
        # The first one is the tool's own: nothing of the agent runs before it.
        self._session = self._session or text(event.get("session_id"))
        match event.get("type"):
            case "system":
                self._model = text(event.get("model")) or self._model
            case "assistant":
                self._take_message(event)
            case "result":
                self._result = event
                self._cost = most(self._cost, micro_usd(event.get("total_cost_usd")))
                self._done.say()
        return self._over()

    def poll(self, state: StateReader) -> AgentEnd | None:
        """Take what the transcript knows better than the stream; ``budget`` once it tells of a cap."""
        self._done.look()
        self._take_transcript(state)
        return self._over()

    def told(self) -> Usage:
        """Return what the last ``result`` event reports; without one what the messages add up to."""
        return self._so_far() if self._result is None else self._reported(self._result)

    def result(self, output: AgentOutput) -> AgentResult:
        """Judge by the last ``result`` event; a success that is marked as an error is a provider failure."""
        outside = end_from_outside(output)
        result = self._result
        denied = None if result is None else _length(result.get("permission_denials"))
        if result is None:
            self._take_transcript(output.state)
        usage = self.told()
        if outside is not None:
            return AgentResult(usage, *outside, denied)
        if result is None:
            code = output.execution.exit_code
            return AgentResult(usage, "exited", f"exit code {code}, no result event: {last_words(output)}")
        subtype = text(result.get("subtype")) or "unknown"
        words = text(result.get("result")) or subtype
        if subtype in _CAP_SUBTYPES:
            return AgentResult(usage, "budget", subtype, denied)
        if result.get("is_error") is not False or subtype != "success":
            return AgentResult(usage, "provider-error", words, denied)
        return AgentResult(usage, "exited", "", denied)

    def _over(self) -> AgentEnd | None:
        """Turns and dollars are the tool's to hold, and it ends in an orderly way; this is the net below."""
        if self._done.is_believed:
            return None
        caps = self.task.caps
        turns = None if caps.turns is None else caps.turns + 1
        held = caps.model_copy(update={"turns": turns, "micro_usd": None})
        return "budget" if over_cap(held, self._so_far()) else None

    def _take_transcript(self, state: StateReader) -> None:
        if not is_session_id(self._session):
            return
        for content in state(f"{_CONFIG}/projects/*/{self._session}.jsonl", _MOST_TRANSCRIPT_BYTES):
            for event in events(content):
                if event.get("type") == "assistant":
                    self._take_message(event)

    def _take_message(self, event: dict[str, Any]) -> None:
        message = mapping(event.get("message"))
        if message.get("model") == _MADE_UP:
            return
        name = text(message.get("id")) or f"event {len(self._messages)}"
        self._model = text(message.get("model")) or self._model
        tokens, before = _tokens(mapping(message.get("usage"))), self._messages.get(name, TokenCounts())
        self._messages[name] = now = larger(before, tokens)
        # Kept as a sum: a long session has thousands of messages, and its caps are looked at after each.
        self._tokens = added(self._tokens, grown(before, now))
        if event.get("parent_tool_use_id") is None:
            self._turns.add(name)

    def _so_far(self) -> Usage:
        dollars = _by_list(self.task.agent.prices, self._tokens)
        return Usage(
            turns=len(self._turns),
            tokens=self._tokens,
            micro_usd=dollars,
            basis="none" if dollars is None else "list-price",
            session_id=self._session,
            model=self._model,
            partial=True,
        )

    def _reported(self, result: dict[str, Any]) -> Usage:
        models = {name: mapping(row) for name, row in mapping(result.get("modelUsage")).items()}
        tokens = reduce(added, map(_model_tokens, models.values()), TokenCounts())
        told = tokens if models else _tokens(mapping(result.get("usage")))
        if (told.total or 0) < (self._tokens.total or 0):
            # Its total has what no message tells; a smaller one than they tell is none.
            told = larger(self._tokens, told)
        return Usage(
            # Its own ``num_turns`` counts what a cap or a failure cut off, too.
            turns=len(self._turns),
            tokens=told,
            micro_usd=self._cost,
            basis="none" if self._cost is None else "reported",
            session_id=self._session,
            model=text(", ".join(sorted(models))) or self._model,
        )


def _tokens(usage: dict[str, Any]) -> TokenCounts:
    return TokenCounts(
        input=count(usage.get("input_tokens")),
        cached_input=count(usage.get("cache_read_input_tokens")),
        cache_write=count(usage.get("cache_creation_input_tokens")),
        output=count(usage.get("output_tokens")),
    )


def _model_tokens(usage: dict[str, Any]) -> TokenCounts:
    return TokenCounts(
        input=count(usage.get("inputTokens")),
        cached_input=count(usage.get("cacheReadInputTokens")),
        cache_write=count(usage.get("cacheCreationInputTokens")),
        output=count(usage.get("outputTokens")),
    )


def _by_list(prices: ListPrice | None, tokens: TokenCounts) -> int | None:
    return None if prices is None else prices.micro_usd(tokens)


def _length(value: object) -> int | None:
    return len(value) if isinstance(value, list) else None
