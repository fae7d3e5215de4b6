"""P06: what a record says that an agent used is held against the stream that was archived."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from roundkit.audit.pilot_usage_checks import usage_problems
from roundkit.models.agent_run import AgentEnd, AgentRun, LogDigest, TokenCounts, Usage
from roundkit.models.lane_agent import LaneAgent, ListPrice
from roundkit.models.lane_command import CommandTemplate, UsageRule
from roundkit.models.pilot_draft import PilotModel
from roundkit.models.round_plan import HarnessName

PRICES = ListPrice(input=10**6, cached_input=10**6, cache_write=10**6, output=10**6)
RULE = UsageRule(take="sum", input="in", output="out", usd="usd", session="session")
AGENT = LaneAgent(command=CommandTemplate(argv=(), program="agent", usage=RULE))
ROWS: dict[HarnessName, list[dict[str, Any]]] = {
    "command": [{"in": 4, "out": 1, "usd": 0.5, "session": "s-1"}, {"in": 6, "out": 1, "usd": 0.5}],
    "claude": [
        {"type": "system", "session_id": "s-1", "model": "m"},
        {"type": "assistant", "message": {"id": "a", "usage": {"input_tokens": 10, "output_tokens": 2}}},
        {
            "type": "result", "subtype": "success", "is_error": False, "total_cost_usd": 1.0,
            "usage": {"input_tokens": 10, "output_tokens": 2},
        },
    ],
    "codex": [
        {"type": "thread.started", "thread_id": "s-1"},
        {"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 2}},
    ],
}  # fmt: skip
TOLD = {
    "command": Usage(turns=2, tokens=TokenCounts(input=10, output=2), micro_usd=10**6, basis="reported",
                     session_id="s-1"),
    "claude": Usage(turns=1, tokens=TokenCounts(input=10, output=2), micro_usd=10**6, basis="reported",
                    session_id="s-1", model="m"),
    # Its answers stand in its own files alone, which no archive has.
    "codex": Usage(turns=3, tokens=TokenCounts(input=10, output=2), micro_usd=12, basis="list-price",
                   session_id="s-1", model="m"),
}  # fmt: skip
EACH = pytest.mark.parametrize("harness", ["command", "claude", "codex"])


def problems(harness: HarnessName, usage: Usage, end: AgentEnd = "exited") -> list[str]:
    agent = AGENT.model_copy(update={"prices": PRICES if harness == "codex" else None})
    model = PilotModel.model_construct(harness=harness, agent=agent)
    moment, log = datetime(2026, 1, 1, tzinfo=UTC), LogDigest(sha256="0" * 64, bytes=0, kept_bytes=0)
    run = AgentRun(
        argv_sha256="0" * 64, cli_version=None, started_utc=moment, ended_utc=moment, exit_code=0,
        end_reason=end, detail="", usage=usage, denied=None, stdout=log, stderr=log,
    )  # fmt: skip
    stream = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS[harness])
    return list(usage_problems(model, run, stream))


@EACH
def test_p06_a_usage_that_the_stream_does_not_tell_is_found(
    harness: HarnessName, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = TOLD[harness]
    assert problems(harness, told) == []
    less = {"tokens": TokenCounts(input=9, output=2), "session_id": "s-2", "micro_usd": 11}
    for name, value in less.items():
        assert any(name in said or "cost" in said for said in problems(harness, _with(told, **{name: value})))
    assert problems(harness, _with(told, tokens=TokenCounts(output=2)))
    assert problems(harness, _with(told, basis="none"))
    # Where it cannot be read again, nothing is said of it.
    monkeypatch.setitem(sys.modules, "roundkit.agents.archived_stream", None)
    assert problems(harness, _with(told, session_id="s-2")) == []


def test_p06_more_than_the_stream_tells_is_found_where_nothing_else_told() -> None:
    more = TokenCounts(input=11, output=2)
    assert problems("command", _with(TOLD["command"], tokens=more))
    assert problems("command", _with(TOLD["command"], turns=3))
    assert problems("command", _with(TOLD["command"], partial=True))
    assert problems("command", _with(TOLD["command"], partial=True), "deadline") == []
    # The transcript that such a tool writes tells more than its stream.
    assert problems("claude", _with(TOLD["claude"], tokens=more)) == []
    assert problems("codex", _with(TOLD["codex"], tokens=more, micro_usd=13)) == []


def _with(usage: Usage, **changes: Any) -> Usage:
    return usage.model_copy(update=changes)
