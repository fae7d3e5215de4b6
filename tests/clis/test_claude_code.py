"""D02 with the real Claude Code: it edits, submits and finishes, and every other end has its own reason."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest
from support.provider_stub import Fail, Hang, Say, Shell, Step, Tool
from support.real_agents import KEY, Cell, RealRound, real_round
from support.synthetic import knob

pytestmark = [pytest.mark.clis, pytest.mark.usefixtures("agents")]

ONE_RETRY = {"environment": {"CLAUDE_CODE_MAX_RETRIES": "1"}}
FOREVER = [Shell(".roundkit/round status")] * 50


def edited(lane: str, value: float) -> list[Step]:
    file = f"{{clone}}/knobs/{lane}.json"
    return [
        Tool("Read", {"file_path": file}),
        Tool("Write", {"file_path": file, "content": knob(value)}),
        Shell(".roundkit/round submit"),
    ]


CELLS = {
    "F1": Cell("claude", [*edited("F1", 0.3), Say("One ticket.")], {"micro_usd": 1_000_000, "turns": 30}),
    "F2": Cell("claude", [*edited("F2", 0.4), Shell("./.roundkit/round submit"), Say("The same ticket.")]),
    "BUDGET": Cell("claude", FOREVER, {"micro_usd": 6_000}),
    "TURNS": Cell("claude", FOREVER, {"turns": 2}),
    "E500": Cell("claude", [*edited("E500", 0.1), Fail(500)], agent=ONE_RETRY),
    "E429": Cell("claude", [Fail(429)], agent=ONE_RETRY),
    "AGAIN": Cell("claude", [Fail(500, 1), Shell(".roundkit/round status"), Say("done")], agent=ONE_RETRY),
    "DENIED": Cell(
        "claude",
        [
            Tool("Write", {"file_path": "{clone}/bench/new.py", "content": "x"}),
            Tool("Write", {"file_path": "/home/lane/x", "content": "x"}),
            Shell("curl http://example.com/"),
            *edited("DENIED", 0.2),
            Say("done"),
        ],
    ),
    "HANGS": Cell("claude", [*edited("HANGS", 0.1), Hang()], {"wall_s": 45}),
    "LATE": Cell(
        "claude",
        [Shell("(setsid sleep 600 &) ; sleep 500")],
        {"wall_s": 45},
        {"allowed_tools": ["Bash(*)"]},
    ),
}


@pytest.fixture(scope="module")
def driven() -> Iterator[RealRound]:
    with pytest.MonkeyPatch.context() as patch, real_round(CELLS) as made:
        patch.setenv("ANTHROPIC_API_KEY", KEY)
        made.drive()
        yield made


@pytest.mark.parametrize("lane", ["F1", "F2"])
def test_d02_claude_edits_submits_and_finishes(driven: RealRound, lane: str) -> None:
    run = driven.run(lane)
    assert (run.end_reason, run.exit_code, run.detail) == ("exited", 0, ""), driven.said
    assert run.cli_version is not None
    assert run.cli_version.startswith("2.1.332")
    assert driven.submitted(lane) == 1
    assert run.denied == 0


def test_d02_its_cost_is_what_it_reports(driven: RealRound) -> None:
    usage = driven.run("F1").usage
    tokens = usage.tokens
    assert (usage.turns, tokens.input, tokens.cached_input, tokens.output) == (4, 3200, 800, 400)
    assert (usage.micro_usd, usage.basis, usage.model) == (15_840, "reported", "claude-sonnet-4-5")
    assert driven.attempt("F1").actual is not None
    assert "claude, model claude-sonnet-4-5" in driven.cost("F1")
    assert "0.015840 USD" in driven.cost("F1")


@pytest.mark.parametrize("lane", ["BUDGET", "TURNS"])
def test_d02_a_cap_ends_it(driven: RealRound, lane: str) -> None:
    run = driven.run(lane)
    assert run.end_reason == "budget"
    assert run.usage.turns == 2
    assert run.usage.tokens.total == 2200
    assert run.usage.micro_usd == 7_920


@pytest.mark.parametrize(("lane", "turns", "status"), [("E500", 3, "500"), ("E429", 0, "429")])
def test_d02_a_provider_that_fails_is_no_end_of_the_agent(
    driven: RealRound, lane: str, turns: int, status: str
) -> None:
    run = driven.run(lane)
    assert run.end_reason == "provider-error"
    assert status in run.detail
    assert len(driven.provider.calls(lane)) == turns + 2
    assert (run.usage.tokens.output or 0) == turns * 100


def test_d02_a_failure_that_passes_is_none(driven: RealRound) -> None:
    assert driven.run("AGAIN").end_reason == "exited"


def test_d02_what_it_is_denied_is_counted_and_not_done(driven: RealRound) -> None:
    run = driven.run("DENIED")
    assert (run.end_reason, run.denied) == ("exited", 3)
    assert driven.submitted("DENIED") == 1
    assert not (driven.folder.clone("DENIED") / "bench" / "new.py").exists()


def test_fault_22_d02_a_stream_that_hangs_ends_at_the_deadline(driven: RealRound) -> None:
    run, record = driven.run("HANGS"), driven.attempt("HANGS")
    assert (run.end_reason, record.phase, record.actual) == ("deadline", "claimed", None)
    assert driven.submitted("HANGS") == 1
    assert run.usage.partial
    tokens = run.usage.tokens
    assert (tokens.input, tokens.cached_input, tokens.output) == (3 * 800, 3 * 200, 3 * 100)


def test_d02_at_the_deadline_its_children_are_gone_too(driven: RealRound) -> None:
    run = driven.run("LATE")
    assert run.end_reason == "deadline"
    commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert ["sleep", "600"] not in commands
    assert ["sleep", "500"] not in commands


def test_d02_no_key_is_left_behind(driven: RealRound) -> None:
    assert {request.key for request in driven.provider.requests} == {KEY}
    for path in driven.folder.root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert KEY.encode() not in path.read_bytes(), path
