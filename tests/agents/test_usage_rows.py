"""D07: usage extractors on recorded outputs, and on rows that an agent made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.agent_tasks import RECORDED, agent_task

from roundkit.agents.contract import StateReader
from roundkit.agents.drivers.command import Command
from roundkit.agents.drivers.common import parse_event
from roundkit.agents.drivers.presets import load_preset
from roundkit.agents.usage import RowUsage
from roundkit.models.agent_run import TokenCounts, Usage
from roundkit.models.lane_agent import LaneAgent, ListPrice
from roundkit.models.lane_command import CommandTemplate, UsageRule
from roundkit.models.round_plan import LaneBudget


def usage_of(rule: UsageRule, recorded: Path, prices: ListPrice | None = None) -> Usage:
    rows = RowUsage(rule, prices)
    for line in recorded.read_text().splitlines():
        rows.take(parse_event(line))
    return rows.usage(partial=False)


def test_d07_sum_over_what_opencode_printed() -> None:
    usage = usage_of(load_preset("opencode").usage, RECORDED / "opencode-1.18.33" / "finished.jsonl")
    assert usage.turns == 3
    assert usage.tokens == TokenCounts(input=2400, cached_input=600, cache_write=0, output=300)
    assert (usage.micro_usd, usage.basis, usage.session_id) == (11880, "reported", "ses_1")


def test_d07_sum_over_what_pi_printed() -> None:
    usage = usage_of(load_preset("pi").usage, RECORDED / "pi-0.74.2" / "finished.jsonl")
    assert usage.turns == 3
    assert usage.tokens == TokenCounts(input=2400, cached_input=600, cache_write=0, output=300)
    assert (usage.micro_usd, usage.basis, usage.model) == (11880, "reported", "claude-sonnet-4-5")


def test_d07_the_last_row_of_gemini_as_its_source_writes_it() -> None:
    rows = RowUsage(load_preset("gemini").usage)
    rows.take({"type": "init", "session_id": "s", "model": "gemini-2.5-pro"})
    stats = {"total_tokens": 1150, "input_tokens": 1000, "output_tokens": 100, "cached": 200, "input": 800}
    rows.take({"type": "result", "status": "success", "stats": stats})
    usage = rows.usage(partial=False)
    assert usage.tokens == TokenCounts(input=800, cached_input=200, output=100)
    assert (usage.session_id, usage.model, rows.failed) == ("s", "gemini-2.5-pro", False)
    rows.take({"type": "result", "status": "error", "stats": stats})
    assert rows.failed


@pytest.mark.parametrize(
    ("name", "recorded"),
    [("copilot", "copilot-1.0.102/finished.jsonl"), ("aider", "aider-0.86.2/finished.txt")],
)
def test_d07_an_agent_that_tells_no_tokens_leaves_them_unknown(name: str, recorded: str) -> None:
    usage = usage_of(load_preset(name).usage, RECORDED / recorded)
    assert (usage.turns, usage.tokens.total, usage.micro_usd, usage.basis) == (None, None, None, "none")


def test_d07_the_last_row_of_codex_with_its_cached_input_taken_out() -> None:
    rule = UsageRule(
        take="last",
        rows={"type": "turn.completed"},
        input="usage.input_tokens",
        cached_input="usage.cached_input_tokens",
        output="usage.output_tokens",
        input_has_cached=True,
        session="thread_id",
    )
    prices = ListPrice(input=1_000_000, cached_input=0, cache_write=0, output=2_000_000)
    usage = usage_of(rule, RECORDED / "codex-0.171.0" / "finished.jsonl", prices)
    assert usage.tokens == TokenCounts(input=2400, cached_input=600, output=300)
    assert (usage.micro_usd, usage.basis, usage.turns) == (3000, "list-price", None)


def test_d07_rows_in_the_agents_own_files() -> None:
    rule = UsageRule(
        take="last",
        of=".codex/sessions/**/rollout-*.jsonl",
        rows={"type": "token_usage_record"},
        input="payload.thread_token_usage.input_tokens",
        output="payload.thread_token_usage.output_tokens",
    )
    template = CommandTemplate(program="agent", argv=(), usage=rule)
    meter = Command().meter(agent_task(LaneAgent(command=template), caps=LaneBudget(tokens=3300)))
    asked: list[str] = []
    assert meter.read('{"type": "token_usage_record"}') is None
    assert meter.poll(_state(b"", asked)) is None
    assert (
        meter.poll(_state((RECORDED / "codex-0.171.0" / "deadline.rollout.jsonl").read_bytes(), asked))
        == "budget"
    )
    assert set(asked) == {rule.of}


def test_d07_a_row_that_says_that_the_provider_failed() -> None:
    rows = RowUsage(UsageRule(failed={"type": "result", "ok": "false"}))
    rows.take({"type": "result", "ok": True})
    assert not rows.failed
    rows.take({"type": "result", "ok": False})
    assert rows.failed


HOSTILE = [
    *("", "null", "[1]", '"x"', "{", "[" * 100_000),
    *('{"usage": null}', '{"usage": {"in": -1, "out": 1.5, "usd": "9"}}', '{"usage": [{"in": 3}]}'),
    *('{"usage": {"in": true, "usd": NaN}}', '{"usage": {"in": 1e400}}'),
]


@pytest.mark.parametrize("line", HOSTILE)
def test_d07_a_row_that_an_agent_made_up_counts_nothing(line: str) -> None:
    rows = RowUsage(
        UsageRule(take="sum", input="usage.in", output="usage.out", usd="usage.usd", turns="usage.n")
    )
    rows.take(parse_event(line))
    usage = rows.usage(partial=True)
    assert (usage.tokens.total, usage.micro_usd, usage.turns, usage.partial) == (None, None, None, True)


def test_d07_unknown_is_not_zero_when_rows_are_summed() -> None:
    rows = RowUsage(UsageRule(take="sum", rows={"kind": "answer"}, input="in", output="out"))
    for row in ({"kind": "answer", "in": 5}, {"kind": "other", "in": 7}, {"kind": "answer", "out": 2}):
        rows.take(json.loads(json.dumps(row)))
    usage = rows.usage(partial=False)
    assert usage.tokens == TokenCounts(input=5, output=2)
    assert usage.turns == 2


def _state(content: bytes, asked: list[str]) -> StateReader:
    def read(pattern: str, max_bytes: int) -> list[bytes]:
        asked.append(pattern)
        return [content[:max_bytes]]

    return read
