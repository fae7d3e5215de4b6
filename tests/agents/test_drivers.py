"""Drivers without a process: what they ask for, and what they make of lines that nobody vouches for."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundkit.agents.agent_log import BoundedLog, Lines
from roundkit.agents.contract import AgentOutput, AgentTask, Gateway
from roundkit.agents.drivers import DRIVERS
from roundkit.agents.drivers.claude import wrapper_forms
from roundkit.agents.drivers.presets import load_preset
from roundkit.agents.lane_boundary import HOME
from roundkit.agents.prompt import lane_prompt
from roundkit.agents.redaction import Redaction
from roundkit.host.confine import Execution, Mount
from roundkit.host.confine.types import Boundary
from roundkit.models.lane_agent import LaneAgent, ListPrice
from roundkit.models.lane_command import CommandTemplate
from roundkit.models.round_plan import FrozenLane, LaneBudget

CLONE = Path("/rounds/r01/lanes/L1")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = sorted(DRIVERS)
EACH = pytest.mark.parametrize("name", NAMES)


def task(caps: LaneBudget | None = None, **agent: Any) -> AgentTask:
    caps = caps or LaneBudget()
    lane = FrozenLane(
        id="L1", entry="E1", plane="algorithm", target_stage="s", hypothesis="It can be faster.",
        globs=("src/**", "*.py", "docs/", "{a,b}/x", "deep/{c,d}.py"), harness="claude", model="m",
        budget=LaneBudget(), attempt_worst_case=caps, attempts=1, submission_cap=4, deadline_utc=NOW,
        changed_condition=None, replay=(), exploration_devices=(),
        agent=LaneAgent(**{"command": load_preset("pi"), **agent}),
    )  # fmt: skip
    return AgentTask(
        round_id="r01", round_digest="0" * 64, lane=lane, clone=CLONE, prompt="work",
        program=Path("/opt/tool/bin/x"), ordinal=1, caps=caps, deadline_utc=NOW, remaining_s=60.0,
    )  # fmt: skip


def output(**changes: Any) -> AgentOutput:
    boundary = Boundary(
        version="0", uid=1, dropped_from_root=False, network="none", seccomp=True, mounts=(), limits=(),
        cpus=None, env_names=(),
    )  # fmt: skip
    ended = Execution(
        exit_code=0, signal=None, end_reason="exited", wall_s=1.0, cpu_s=None, cpu_source=None,
        peak_memory_bytes=None, stdout_tail=None, stderr_tail="", stdout_sha256=None, stderr_sha256="0" * 64,
        stdout_bytes=None, stderr_bytes=0, boundary=boundary,
    )  # fmt: skip
    return AgentOutput(ended.model_copy(update=changes), None, lambda pattern, size: [])


@EACH
def test_the_prompt_never_allows_a_wait_beyond_the_tools_own_limit(name: Any) -> None:
    driver = DRIVERS[name]
    assert 0 < driver.wait_s < driver.tool_limit_s
    prompt = lane_prompt(
        task().lane, clone=CLONE, protected_paths=("bench/**",), wait_s=driver.wait_s,
        caps=LaneBudget(turns=7), deadline_utc=NOW,
    )  # fmt: skip
    for needed in (f"--wait {driver.wait_s}", "2026-01-01T00:00:00", "Turns: 7", str(CLONE), "bench/**"):
        assert needed in prompt


@EACH
def test_d01_no_driver_ever_asks_for_a_worktree_or_holds_a_key(name: Any) -> None:
    command = DRIVERS[name].command(task(key_variables=("SOME_KEY",), effort="high"))
    assert not any("worktree" in word for word in command.argv)
    assert command.key_variables == ("SOME_KEY",)
    assert "SOME_KEY" not in command.env
    assert "work" not in command.argv
    assert command.stdin == b"work"
    private = [
        value for key, value in command.env.items() if key.startswith(("XDG_", "CLAUDE_CONFIG", "CODEX_"))
    ]
    assert len(private) >= 4
    assert all(value.startswith("/home/lane/") for value in private)


def test_claude_may_edit_what_the_lanes_globs_match_and_nothing_above() -> None:
    argv = DRIVERS["claude"].command(task()).argv
    allowed = argv[argv.index("--allowedTools") + 1 :]
    assert [rule for rule in allowed if rule.startswith("Edit")] == [
        f"Edit(/{CLONE}/src/**)", f"Edit(/{CLONE}/*.py)", f"Edit(/{CLONE}/docs/**)", f"Edit(/{CLONE}/**)",
        f"Edit(/{CLONE}/deep/**)",
    ]  # fmt: skip
    assert all(f"Bash({form} submit)" in allowed for form in wrapper_forms(CLONE))
    assert argv.index("--setting-sources") + 1 == argv.index("")


def test_an_agent_reads_its_program_and_not_what_lies_beside_it(tmp_path: Path) -> None:
    def shown(program: str, **agent: Any) -> list[str]:
        at = tmp_path / program
        command = DRIVERS["claude"].command(replace(task(**agent), program=at))
        return [mount.source.relative_to(tmp_path).as_posix() for mount in command.readable]

    (tmp_path / "nvm/bin").mkdir(parents=True)
    (tmp_path / "nvm/bin/node").touch()
    assert shown("owner/claude") == ["owner/claude"]
    assert shown("owner/tools/claude", readable=(str(tmp_path / "owner/tools"),)) == ["owner/tools"]
    assert shown("npm/node_modules/@a/b/node_modules/c/cli.js") == ["npm/node_modules"]
    assert shown("nvm/lib/node_modules/@a/b/cli.js") == ["nvm"]
    assert DRIVERS["claude"].command(replace(task(), program=Path("/usr/bin/claude"))).readable == ()


def test_codex_is_configured_by_a_file_that_names_the_key_and_holds_none() -> None:
    made = task(key_variables=("MY_KEY",), environment={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    [file] = DRIVERS["codex"].command(made).files
    import tomllib

    content = tomllib.loads(file.content.decode())
    assert str(file.at) == ".codex/config.toml"
    provider = content["model_providers"][content["model_provider"]]
    assert (provider["env_key"], provider["base_url"]) == ("MY_KEY", "http://127.0.0.1:9/v1")
    assert "model_provider" not in tomllib.loads(DRIVERS["codex"].command(task()).files[0].content.decode())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KINDS = (
    "system",
    "assistant",
    "result",
    "thread.started",
    "turn.completed",
    "turn.failed",
    "error",
    "item.completed",
)
KEYS = (
    "message", "usage", "modelUsage", "total_cost_usd", "num_turns", "session_id", "thread_id", "error",
    "result", "subtype", "is_error", "permission_denials", "model",
)  # fmt: skip
events = st.fixed_dictionaries(
    {"type": st.sampled_from(KINDS)}, optional=dict.fromkeys(KEYS, json_values)
).map(json.dumps)


@EACH
@settings(max_examples=100, deadline=None)
@given(lines=st.lists(events | st.text(max_size=30), max_size=8))
def test_a_meter_takes_whatever_an_agent_prints(name: Any, lines: list[str]) -> None:
    prices = dict.fromkeys(ListPrice.model_fields, 1)
    meter = DRIVERS[name].meter(task(LaneBudget(tokens=10, turns=2), prices=prices))
    for line in [*lines, "[" * 100_000]:
        assert meter.read(line) in {None, "budget"}
    result = meter.result(output())
    assert result.end_reason in {"exited", "budget", "provider-error"}
    assert result.usage.model_dump_json()


@EACH
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"end_reason": "deadline", "exit_code": None}, "deadline"),
        ({"end_reason": "signal", "exit_code": None, "signal": 9}, "killed"),
        ({"end_reason": "memory", "exit_code": None}, "killed"),
        ({"end_reason": "setup-failed", "exit_code": None, "wall_s": None}, "preflight"),
        ({"exit_code": 127}, "preflight"),
        ({"exit_code": 0}, "exited"),
    ],
)
def test_an_end_from_outside_is_no_matter_of_what_was_printed(
    name: Any, changes: dict[str, Any], reason: str
) -> None:
    result = DRIVERS[name].meter(task()).result(output(**changes))
    assert (result.end_reason, result.usage.micro_usd, result.usage.basis) == (reason, None, "none")


def test_claude_counts_a_message_once_and_believes_the_result_at_the_end() -> None:
    meter = DRIVERS["claude"].meter(task())
    usage = {
        "input_tokens": 5,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 2,
        "output_tokens": 1,
    }
    message = {"type": "assistant", "message": {"id": "m1", "usage": usage}}
    for _ in range(3):
        meter.read(json.dumps(message))
    partial = meter.result(output()).usage
    assert (partial.turns, partial.tokens.total, partial.partial) == (1, 11, True)
    models = {
        "big": {
            "inputTokens": 10,
            "outputTokens": 4,
            "cacheReadInputTokens": 0,
            "cacheCreationInputTokens": 0,
        },
        "small": {"inputTokens": 1, "outputTokens": 1},
    }
    end = {
        "type": "result", "subtype": "success", "is_error": True, "result": "API Error: 500", "num_turns": 2,
        "total_cost_usd": 0.0000015, "modelUsage": models, "permission_denials": [{}, {}],
    }  # fmt: skip
    meter.read(json.dumps(end))
    result = meter.result(output())
    assert (result.end_reason, result.detail, result.denied) == ("provider-error", "API Error: 500", 2)
    assert (result.usage.tokens.total, result.usage.micro_usd, result.usage.model) == (16, 2, "big, small")


def with_gateway(**agent: Any) -> AgentTask:
    gateway = Gateway(
        ("/usr/bin/python3", "/pilot/gateway/shim.py"), (Mount(Path("/g"), Path("/pilot/gateway")),)
    )
    return replace(task(**agent), clone=Path("/pilot/scratch"), gateway=gateway)


def test_a_task_with_a_gateway_gets_it_and_no_tools_of_the_harness_itself() -> None:
    claude = DRIVERS["claude"].command(with_gateway(allowed_tools=("mcp__task__more",)))
    (written,) = claude.files
    assert claude.argv[claude.argv.index("--mcp-config") + 1].endswith(str(written.at))
    assert claude.argv[claude.argv.index("--tools") + 1] == ""
    assert claude.argv[claude.argv.index("--allowedTools") + 1 :] == ("mcp__task", "mcp__task__more")
    named = json.loads(written.content)["mcpServers"]["task"]
    assert named == {"command": "/usr/bin/python3", "args": ["/pilot/gateway/shim.py"]}

    codex = tomllib.loads(DRIVERS["codex"].command(with_gateway()).files[0].content.decode())
    assert codex["mcp_servers"]["task"] == named
    assert codex["features"] == {"shell_snapshot": False, "shell_tool": False, "unified_exec": False}
    assert "shell_tool" not in DRIVERS["codex"].command(task()).files[0].content.decode()

    template = CommandTemplate(argv=("--config", "{mcp_config}"), program="agent")
    command = DRIVERS["command"].command(with_gateway(command=template))
    assert command.argv[-1] == str(HOME / command.files[0].at)
    assert command.files[0].content == written.content


@given(before=st.binary(max_size=50), after=st.binary(max_size=50), cut=st.integers(0, 200))
def test_d09_a_key_is_taken_out_wherever_the_stream_is_cut(before: bytes, after: bytes, cut: int) -> None:
    key = "sk-0123456789abcdef"
    content = before + key.encode() + after + b"\n" + key.encode()
    lines = Lines(Redaction({"KEY": key}))
    seen = b"".join([*lines.feed(content[:cut]), *lines.feed(content[cut:]), *lines.end()])
    assert key.encode() not in seen
    assert seen.count(b"[KEY]") >= 2


def test_d09_a_key_in_a_line_without_an_end_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roundkit.agents.agent_log.MOST_LINE_BYTES", 64)
    key = "sk-0123456789abcdef"
    lines = Lines(Redaction({"KEY": key}))
    stream = ("x" * 60 + key) * 5
    seen = b"".join(
        [piece for at in range(0, len(stream), 7) for piece in lines.feed(stream[at : at + 7].encode())]
        + list(lines.end())
    )
    assert key.encode() not in seen
    assert seen.count(b"[KEY]") == 5


def test_d09_a_key_in_json_and_a_key_that_was_cut_in_two() -> None:
    key = 'a"b\\c-é-0123456789'
    redaction = Redaction({"KEY": key})
    assert redaction.text(json.dumps({"k": key})) == '{"k": "[KEY]"}'
    assert redaction.text(json.dumps({"k": key}, ensure_ascii=False)) == '{"k": "[KEY]"}'
    cut = redaction.cut_text(f"{'x' * 40}{key[:9]}\n[… 12 bytes left out …]\n{key[9:]}{'y' * 40}")
    assert key[:9] not in cut
    assert key[9:] not in cut
    assert "bytes left out" in cut
    assert Redaction({"EMPTY": ""}).text("as it is") == "as it is"


@given(parts=st.lists(st.binary(max_size=40), max_size=20), keep=st.integers(2, 60))
def test_a_log_keeps_both_ends_and_digests_all(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], keep: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "stdout"
    log = BoundedLog(path, keep)
    for part in parts:
        log.add(part)
    kept, whole = log.close(), b"".join(parts)
    assert (kept.sha256, kept.bytes) == (hashlib.sha256(whole).hexdigest(), len(whole))
    assert kept.kept_bytes == min(len(whole), keep)
    content = path.read_bytes()
    if len(whole) <= keep:
        assert content == whole
    else:
        assert content.startswith(whole[: keep - keep // 2] + b"\n[")
        assert content.endswith(b"]\n" + whole[len(whole) - keep // 2 :])
