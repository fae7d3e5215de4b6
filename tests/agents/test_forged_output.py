"""Rows and files that an agent forged: whatever they hold, the record stands, and no total ever shrinks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.agent_tasks import RECORDED, agent_task

from roundkit.agents.agent_state import state_reader
from roundkit.agents.contract import AgentOutput, Meter, StateReader
from roundkit.agents.drivers import DRIVERS
from roundkit.agents.drivers.presets import load_preset, preset_names
from roundkit.agents.redaction import Redaction
from roundkit.host.confine import Boundary, Execution
from roundkit.models.agent_run import Usage
from roundkit.models.lane_agent import LaneAgent, ListPrice
from roundkit.models.lane_command import CommandTemplate, UsageRule
from roundkit.models.round_plan import HarnessName, LaneBudget

EACH = pytest.mark.parametrize("harness", ["claude", "codex", "command"])
SESSION = "01234567-89ab"
RULE = UsageRule(
    take="sum", input="in", output="out", usd="usd", turns="n", session="session_id", model="model",
    failed={"type": "error"},
)  # fmt: skip
PRICES = ListPrice(input=10**9, cached_input=1, cache_write=1, output=10**9)


def meter_of(harness: HarnessName, *, rule: UsageRule = RULE, caps: LaneBudget | None = None) -> Meter:
    template = CommandTemplate(argv=(), program="agent", usage=rule)
    return DRIVERS[harness].meter(agent_task(LaneAgent(command=template, prices=PRICES), caps=caps))


def ended(*, stderr: str = "", state: StateReader = lambda pattern, size: [], **changes: Any) -> AgentOutput:
    boundary = Boundary(
        version="0", uid=1, dropped_from_root=False, network="none", seccomp=True, mounts=(), limits=(),
        cpus=None, env_names=(),
    )  # fmt: skip
    execution = Execution(
        exit_code=0, signal=None, end_reason="exited", wall_s=1.0, cpu_s=None, cpu_source=None,
        peak_memory_bytes=None, stdout_tail=None, stderr_tail=stderr, stdout_sha256=None,
        stderr_sha256="0" * 64, stdout_bytes=None, stderr_bytes=0, boundary=boundary,
    )  # fmt: skip
    return AgentOutput(execution.model_copy(update=changes), None, state)


def lines_of(amount: Any, words: Any) -> list[dict[str, Any]]:
    """Rows of every tool that say an amount and some words wherever a tool says one."""
    tokens = dict.fromkeys(("input_tokens", "output_tokens", "cached_input_tokens"), amount)
    model = {words if isinstance(words, str) else "m": {"inputTokens": amount, "outputTokens": amount}}
    return [
        {"type": "system", "session_id": words, "model": words},
        {"type": "thread.started", "thread_id": words},
        {"type": "assistant", "message": {"id": words, "model": words, "usage": tokens}},
        {"in": amount, "out": amount, "usd": amount, "n": amount, "session_id": words, "model": words},
        {"type": "turn.completed", "usage": tokens},
        {
            "type": "result", "subtype": words, "is_error": True, "result": words,
            "total_cost_usd": amount, "modelUsage": model, "usage": tokens,
        },
        {"type": "turn.failed", "error": {"message": words}},
        {"type": "error", "message": words},
    ]  # fmt: skip


@EACH
@pytest.mark.parametrize(
    "amount", [-1, 2**53 + 1, 10**30, 10**400, float("nan"), float("inf"), True, "9", [3]]
)
def test_an_amount_that_is_none_is_unknown_and_the_record_stands(harness: HarnessName, amount: Any) -> None:
    meter = meter_of(harness)
    for row in lines_of(amount, "words"):
        meter.read(json.dumps(row))
    usage = meter.result(ended()).usage
    assert Usage.from_bytes(usage.to_bytes(), place="usage") == usage
    assert (usage.tokens.total, usage.micro_usd) == (None, None)


@EACH
def test_amounts_that_add_up_beyond_exact_json_stay_within_it(harness: HarnessName) -> None:
    meter = meter_of(harness)
    for number in range(2_000):
        row = lines_of(10**12, "m")
        for line in (row[2] | {"message": {**row[2]["message"], "id": f"m{number}"}}, row[3]):
            meter.read(json.dumps(line))
    usage = meter.result(ended()).usage
    assert Usage.from_bytes(usage.to_bytes(), place="usage") == usage


@EACH
@pytest.mark.parametrize("words", ["\ud800", "a\x1b]0;owned\x07b\nsecond line", "\u202e", "x" * 1_000_000])
def test_words_become_one_line_that_can_be_shown(harness: HarnessName, words: str) -> None:
    meter = meter_of(harness)
    for row in lines_of(1, words):
        meter.read(json.dumps(row))
    result = meter.result(ended(stderr=f"first\n{words}"))
    Usage.from_bytes(result.usage.to_bytes(), place="usage")
    for text in (result.detail, result.usage.session_id or "", result.usage.model or ""):
        assert text.encode().decode() == text
        assert not {"\x1b", "\n", "\u202e"} & set(text)
        assert len(text) < 1000


def test_a_total_that_shrinks_takes_nothing_back() -> None:
    last = UsageRule(take="last", input="in", output="out", usd="usd", turns="n")
    rows = [{"in": 900, "out": 90, "usd": 2.5, "n": 7}, {"in": 1, "out": 1, "usd": 0, "n": 0}]
    meter = meter_of("command", rule=last)
    for row in rows:
        meter.read(json.dumps(row))
    usage = meter.result(ended()).usage
    assert (usage.tokens.total, usage.micro_usd, usage.turns) == (990, 2_500_000, 7)

    codex = meter_of("codex", caps=LaneBudget(tokens=1000))
    codex.read(json.dumps({"type": "thread.started", "thread_id": SESSION}))
    rollout = "\n".join(
        json.dumps({"payload": {"type": "token_count", "info": {"total_token_usage": {
            "input_tokens": amount, "output_tokens": amount}}}})
        for amount in (600, 2)
    )  # fmt: skip
    assert codex.poll(lambda pattern, size: [rollout.encode()]) == "budget"


DONE = {
    "codex": {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}},
    "claude": {"type": "result", "subtype": "success", "is_error": False, "total_cost_usd": 0.0,
               "modelUsage": {"m": {"inputTokens": 1, "outputTokens": 1}}},
}  # fmt: skip


def told(harness: str, amount: int) -> StateReader:
    """What the tool's own file says of an amount of tokens in and out."""
    usage = {"input_tokens": amount, "output_tokens": amount}
    row: dict[str, Any] = {"payload": {"type": "token_count", "info": {"total_token_usage": usage}}}
    if harness == "claude":
        row = {"type": "assistant", "message": {"id": "m1", "usage": usage}}
    return lambda pattern, size: [json.dumps(row).encode()]


@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_d02_a_forged_word_of_the_end_lifts_no_cap(harness: HarnessName) -> None:
    meter = meter_of(harness, caps=LaneBudget(tokens=1000))
    meter.read(json.dumps({"type": "thread.started", "thread_id": SESSION, "session_id": SESSION}))
    # A tool that has ended its turn has a moment to go, even at its cap.
    assert meter.read(json.dumps(DONE[harness])) is None
    assert meter.poll(told(harness, 600)) is None
    assert meter.read(json.dumps(DONE[harness])) is None
    assert meter.poll(told(harness, 600)) == "budget"
    # Saying it again and again gains nothing.
    assert meter.read(json.dumps(DONE[harness])) == "budget"
    result = meter.result(ended(state=told(harness, 5)))
    assert (result.end_reason, result.usage.tokens.total) == ("exited", 1200)


@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_d02_a_complete_turn_at_its_cap_ends_by_itself(harness: HarnessName) -> None:
    meter = meter_of(harness, caps=LaneBudget(tokens=2))
    assert meter.read(json.dumps(DONE[harness])) is None
    assert meter.poll(lambda pattern, size: []) is None
    assert meter.result(ended()).end_reason == "exited"


def test_d02_another_session_than_the_first_is_none_of_the_tools() -> None:
    meter, asked = meter_of("codex", caps=LaneBudget(tokens=1000)), []
    for thread in (SESSION, "another-session"):
        meter.read(json.dumps({"type": "thread.started", "thread_id": thread}))
    meter.poll(lambda pattern, size: asked.append(pattern) or [])
    assert [SESSION in pattern for pattern in asked] == [True]


@EACH
def test_d02_files_that_an_agent_empties_take_nothing_back(harness: HarnessName) -> None:
    rule = RULE.model_copy(update={"of": "usage.jsonl"})
    meter = meter_of(harness, rule=rule)
    meter.read(json.dumps({"type": "thread.started", "thread_id": SESSION, "session_id": SESSION}))
    row = {"in": 600, "out": 600, "n": 3}
    full = (lambda pattern, size: [json.dumps(row).encode()]) if harness == "command" else told(harness, 600)
    meter.poll(full)
    meter.poll(lambda pattern, size: [])
    usage = meter.result(ended()).usage
    assert (usage.tokens.total, usage.turns) == (1200, 3 if harness == "command" else 1)


def test_a_failure_after_a_forged_end_is_a_failure() -> None:
    meter = meter_of("codex")
    for row in (DONE["codex"], {"type": "turn.failed", "error": {"message": "529 Overloaded"}}):
        meter.read(json.dumps(row))
    assert meter.result(ended(exit_code=1)).end_reason == "provider-error"


def test_a_line_separator_within_a_row_does_not_hide_its_tokens() -> None:
    usage = {"input_tokens": 70, "output_tokens": 30}
    message = {"id": "m1", "usage": usage, "content": [{"type": "text", "text": "one\u2028two\x85three"}]}
    transcript = json.dumps({"type": "assistant", "message": message}, ensure_ascii=False).encode()
    claude = meter_of("claude", caps=LaneBudget(tokens=100))
    claude.read(json.dumps({"type": "system", "session_id": SESSION}))
    assert claude.poll(lambda pattern, size: [transcript]) == "budget"


@EACH
def test_one_that_spoke_was_started_whatever_it_ends_with(harness: HarnessName) -> None:
    output = ended(exit_code=127)
    assert meter_of(harness).result(output).end_reason == "preflight"
    spoke = AgentOutput(output.execution, None, output.state, spoke=True)
    assert meter_of(harness).result(spoke).end_reason == "exited"


def test_files_of_an_agent_are_read_up_to_one_size_together(tmp_path: Path) -> None:
    for number in range(200):
        with (tmp_path / f"{number:03}.jsonl").open("wb") as stream:
            stream.truncate(1 << 20)
    read = state_reader(tmp_path, Redaction({}))
    assert sum(map(len, read("*.jsonl", 4 << 20))) == 4 << 20


def test_a_home_with_any_number_of_files_is_looked_at_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roundkit.agents.agent_state._MOST_ENTRIES", 50)
    looked: list[str] = []
    real = os.scandir

    def counting(folder: Any) -> Any:
        class Entries:
            def __enter__(self) -> Any:
                return self

            def __exit__(self, *rest: object) -> None:
                opened.close()

            def __iter__(self) -> Any:
                for entry in opened:
                    looked.append(entry.name)
                    yield entry

        opened = real(folder)
        return Entries()

    for number in range(300):
        (tmp_path / f"{number}.jsonl").touch()
    monkeypatch.setattr("os.scandir", counting)
    state_reader(tmp_path, Redaction({}))("*.jsonl", 100)
    assert len(looked) <= 51


def test_d09_a_key_is_taken_out_in_whatever_case() -> None:
    redaction = Redaction({"MY_KEY": "sk-Live-7Zq4Wk9f"})
    assert redaction.any_case("not reached: sk-live-7zq4wk9f.evil.example:443") == (
        "not reached: [MY_KEY].evil.example:443"
    )
    assert Redaction({}).any_case("not reached: x:1") == "not reached: x:1"


STATUSES = sorted(RECORDED.glob("claude-*/status-*.jsonl")) + sorted(RECORDED.glob("codex-*/status-*.jsonl"))


@pytest.mark.parametrize("recorded", STATUSES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_fault_35_what_the_real_tools_say_of_a_failing_provider_is_no_success(recorded: Path) -> None:
    harness: Any = recorded.parent.name.partition("-")[0]
    meter = meter_of(harness)
    lines = recorded.read_text().splitlines()
    for line in lines:
        meter.read(line)
    if harness == "claude":
        assert json.loads(lines[-1])["subtype"] == "success"
    result = meter.result(ended(exit_code=0))
    assert result.end_reason == "provider-error"
    assert result.detail


@pytest.mark.parametrize("flag", [True, "true", 1, None])
def test_fault_35_a_success_that_does_not_say_that_it_is_no_error_is_none(flag: Any) -> None:
    meter = meter_of("claude")
    body = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded (529)"}}'
    meter.read(json.dumps({"type": "result", "subtype": "success", "is_error": flag, "result": body}))
    result = meter.result(ended(exit_code=0))
    assert (result.end_reason, "529" in result.detail) == ("provider-error", True)


def test_fault_35_codex_that_reports_an_error_and_exits_well_is_not_believed() -> None:
    meter = meter_of("codex")
    for row in ({"type": "turn.started"}, {"type": "error", "message": "529 Overloaded"}):
        meter.read(json.dumps(row))
    result = meter.result(ended(exit_code=0))
    assert (result.end_reason, result.detail) == ("provider-error", "529 Overloaded")


@pytest.mark.parametrize("preset", [name for name in preset_names() if load_preset(name).usage.failed])
def test_fault_35_a_preset_that_knows_the_row_of_a_failure_is_not_believed(preset: str) -> None:
    rule = load_preset(preset).usage
    meter = meter_of("command", rule=rule)
    meter.read(json.dumps({**rule.failed, "message": "429"}))
    assert meter.result(ended(exit_code=0)).end_reason == "provider-error"
