"""Codex: one ``codex exec --json`` a lane. It holds no cap itself, so its session files are followed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
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
    count,
    credentials,
    end_from_outside,
    events,
    is_session_id,
    larger,
    last_words,
    mapping,
    most,
    over_cap,
    parse_event,
    private_environment,
    readable,
    text,
)
from roundkit.agents.lane_boundary import HOME, HomeFile
from roundkit.models.agent_run import AgentEnd, TokenCounts, Usage
from roundkit.models.round_plan import HarnessName

_CODEX_HOME = PurePosixPath(".codex")
_BYPASS = "--dangerously-bypass-approvals-and-sandbox"
_NO_SHELL = {"shell_tool": False, "unified_exec": False}
_MOST_SESSION_BYTES = 64 << 20


class Codex:
    """The driver of harness ``codex``."""

    name: HarnessName = "codex"
    program = "codex"
    tool_limit_s = 10
    """Its shell tool ends a command after ten seconds unless the model asks for more."""
    wait_s = 8

    def preflight(self, task: AgentTask) -> Preflight:
        """Ask for the version and for every flag that :meth:`command` uses."""
        return Preflight(help=("exec", "--help"), flags=("--json", "--model", "--config", "--cd", _BYPASS))

    def command(self, task: AgentTask) -> AgentCommand:
        """Return ``codex exec`` with its own sandbox off: the lane's boundary is the one that holds."""
        return AgentCommand(
            argv=(str(task.program), *_arguments(task)),
            stdin=task.prompt.encode(),
            env={"CODEX_HOME": str(HOME / _CODEX_HOME), **private_environment(task)},
            key_variables=task.agent.key_variables,
            hosts=task.agent.hosts,
            credentials=credentials(task),
            files=(HomeFile(_configuration(task), _CODEX_HOME / "config.toml"),),
            readable=readable(task),
        )

    def meter(self, task: AgentTask) -> CodexMeter:
        """Return a meter that holds every cap."""
        return CodexMeter(task)


def _arguments(task: AgentTask) -> Iterator[str]:
    yield from ("exec", "--json", "-C", str(task.clone), "-c", "approval_policy=never", _BYPASS)
    if task.lane.model is not None:
        yield from ("--model", task.lane.model)
    yield "-"


def _configuration(task: AgentTask) -> bytes:
    """Return ``config.toml``: which provider, by the name of its key's variable, and nothing from outside."""
    agent = task.agent
    settings: dict[str, object] = {
        "check_for_update_on_startup": False,
        "cli_auth_credentials_store": "file",
    }
    if agent.effort is not None:
        settings["model_reasoning_effort"] = agent.effort
    base_url = agent.environment.get("OPENAI_BASE_URL")
    tables = [
        *_gateway_tables(task),
        "[analytics]\nenabled = false\n",
        "[history]\npersistence = 'none'\n",
        # A snapshot of its shell's variables would stay behind with the key in it when it is killed.
        "[features]\n" + _toml({"shell_snapshot": False, **({} if task.gateway is None else _NO_SHELL)}),
        "[shell_environment_policy]\n" + _toml({"exclude": list(agent.key_variables)}),
    ]
    if base_url is not None or agent.key_variables:
        settings["model_provider"] = "lane"
        provider: dict[str, object] = {
            "name": "the lane's provider",
            "base_url": base_url or "https://api.openai.com/v1",
            "wire_api": "responses",
        }
        if agent.key_variables:
            provider["env_key"] = agent.key_variables[0]
        tables.append("[model_providers.lane]\n" + _toml(provider))
    return "\n".join([_toml(settings), *tables]).encode()


def _gateway_tables(task: AgentTask) -> Iterator[str]:
    if task.gateway is not None:
        program, *arguments = task.gateway.argv
        yield f"[mcp_servers.{GATEWAY_NAME}]\n" + _toml({"command": program, "args": arguments})


def _toml(values: dict[str, object]) -> str:
    # JSON's strings, numbers and booleans are TOML's, but for one escape.
    return "".join(f"{key} = {json.dumps(value).replace(chr(127), '')}\n" for key, value in values.items())


@dataclass
class CodexMeter:
    """Reads the event stream, and the session file for what the stream tells only at the end."""

    task: AgentTask
    _session: str | None = None
    _model: str | None = None
    _turns: int | None = None
    _tokens: TokenCounts = field(default_factory=TokenCounts)
    _done: LastWord = field(default_factory=LastWord)
    _failure: str | None = None
    _last_error: str | None = None

    def begin(self, state: StateReader) -> None:
        """Leave what lies there: a session file is named after its session."""

    def read(self, line: str) -> AgentEnd | None:
        """Take one event. Errors of the stream itself are not the end: the tool reconnects."""
        event = parse_event(line)
        match event.get("type"):
            case "thread.started":
                # The first one is the tool's own: nothing of the agent runs before it.
                self._session = self._session or text(event.get("thread_id"))
            case "turn.completed":
                self._failure = None
                self._done.say()
                self._take_tokens(mapping(event.get("usage")))
            case "turn.failed":
                self._failure = text(mapping(event.get("error")).get("message")) or "the turn failed"
            case "error":
                self._last_error = text(event.get("message")) or self._last_error
        return self._over()

    def poll(self, state: StateReader) -> AgentEnd | None:
        """Follow the session file; ``budget`` once it tells of a cap that was reached."""
        self._done.look()
        self._take_session(state)
        return self._over()

    def told(self) -> Usage:
        """Return the largest running totals so far."""
        prices = self.task.agent.prices
        dollars = None if prices is None else prices.micro_usd(self._tokens)
        return Usage(
            turns=self._turns,
            tokens=self._tokens,
            micro_usd=dollars,
            basis="none" if dollars is None else "list-price",
            session_id=self._session,
            model=self._model,
            partial=not self._done.was_said,
        )

    def result(self, output: AgentOutput) -> AgentResult:
        """Judge by the turn's own event. Exit code 0 without one says nothing."""
        self._take_session(output.state)
        usage = self.told()
        outside = end_from_outside(output)
        if outside is not None:
            return AgentResult(usage, *outside)
        if self._done.was_said and self._failure is None:
            return AgentResult(usage, "exited")
        if self._failure is not None or self._last_error is not None:
            return AgentResult(usage, "provider-error", self._failure or self._last_error or "")
        code = output.execution.exit_code
        return AgentResult(usage, "exited", f"exit code {code}, no turn completed: {last_words(output)}")

    def _over(self) -> AgentEnd | None:
        """Hold every cap, but for the moment in which a complete turn lets the tool end."""
        return "budget" if not self._done.is_believed and over_cap(self.task.caps, self.told()) else None

    def _take_session(self, state: StateReader) -> None:
        if not is_session_id(self._session):
            return
        # Earlier attempts of the lane left theirs in the same home.
        pattern = f"{_CODEX_HOME}/sessions/**/rollout-*{self._session}*.jsonl"
        for content in state(pattern, _MOST_SESSION_BYTES):
            answers, records = 0, 0
            for event in events(content):
                payload = mapping(event.get("payload"))
                if event.get("type") == "turn_context":
                    self._model = text(payload.get("model")) or self._model
                elif event.get("type") == "token_usage_record":
                    records += 1
                    self._take_tokens(mapping(payload.get("thread_token_usage")))
                elif payload.get("type") == "token_count" and (info := mapping(payload.get("info"))):
                    answers += 1
                    # Comes after the tool's answer, and so later than the record of the same call.
                    if not records:
                        self._take_tokens(mapping(info.get("total_token_usage")))
            # What its files once told stays told, whatever an agent makes of them.
            self._turns = most(self._turns, records or answers or None)

    def _take_tokens(self, usage: dict[str, Any]) -> None:
        """Take a running total. The tool counts cached input among the input; here each token counts once."""
        read, cached = count(usage.get("input_tokens")), count(usage.get("cached_input_tokens"))
        if read is None:
            return
        taken = TokenCounts(
            input=max(0, read - (cached or 0)),
            cached_input=cached,
            output=count(usage.get("output_tokens")),
        )
        # A total that shrinks is none.
        self._tokens = larger(self._tokens, taken)
