"""D02 with the real Codex: it edits, submits and finishes, and every other end has its own reason."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest
from support.provider_stub import Fail, Hang, Say, Shell, Step
from support.real_agents import KEY, Cell, RealRound, real_round
from support.synthetic import knob

pytestmark = [pytest.mark.clis, pytest.mark.usefixtures("agents")]

PRICES = {"input": 1_000_000, "cached_input": 100_000, "cache_write": 0, "output": 10_000_000}
PRICED = {"prices": PRICES}
FOREVER = [Shell("sleep 2; .roundkit/round status")] * 50


def edited(lane: str, value: float) -> list[Step]:
    return [Shell(f"echo '{knob(value)}' > knobs/{lane}.json"), Shell(".roundkit/round submit")]


CELLS = {
    "F1": Cell("codex", [*edited("F1", 0.3), Say("One ticket.")], {"micro_usd": 1_000_000}, PRICED),
    "F2": Cell("codex", [*edited("F2", 0.4), Shell("./.roundkit/round submit"), Say("The same ticket.")]),
    "BUDGET": Cell("codex", FOREVER, {"micro_usd": 3_000}, PRICED),
    "TOKENS": Cell("codex", FOREVER, {"tokens": 2_000}),
    "TURNS": Cell("codex", FOREVER, {"turns": 2}),
    "E500": Cell("codex", [*edited("E500", 0.1), Fail(500)]),
    "E429": Cell("codex", [Fail(429)]),
    "AGAIN": Cell("codex", [Fail(500, 1), Shell(".roundkit/round status"), Say("done")]),
    "DENIED": Cell(
        "codex",
        [
            Shell("echo x > .git/config; echo x > ../beside; echo x > /usr/x; curl -sS http://example.com/"),
            Shell("env > .roundkit/scratch/variables"),
            *edited("DENIED", 0.2),
            Say("done"),
        ],
    ),
    "HANGS": Cell("codex", [*edited("HANGS", 0.1), Hang()], {"wall_s": 45}),
    "LATE": Cell("codex", [Shell("(setsid sleep 601 &) ; sleep 501")], {"wall_s": 45}),
}


@pytest.fixture(scope="module")
def driven() -> Iterator[RealRound]:
    with pytest.MonkeyPatch.context() as patch, real_round(CELLS) as made:
        patch.setenv("OPENAI_API_KEY", KEY)
        made.drive()
        yield made


@pytest.mark.parametrize("lane", ["F1", "F2"])
def test_d02_codex_edits_submits_and_finishes(driven: RealRound, lane: str) -> None:
    run = driven.run(lane)
    assert (run.end_reason, run.exit_code) == ("exited", 0), driven.said
    assert run.cli_version == "codex-cli 0.171.0"
    assert driven.submitted(lane) == 1
    assert run.denied is None


def test_d02_its_cost_is_by_list_price(driven: RealRound) -> None:
    usage = driven.run("F1").usage
    tokens = usage.tokens
    assert (usage.turns, tokens.input, tokens.cached_input, tokens.output) == (3, 2400, 600, 300)
    assert (usage.micro_usd, usage.basis) == (2400 + 60 + 3000, "list-price")
    assert (driven.run("F2").usage.micro_usd, driven.run("F2").usage.basis) == (None, "none")
    assert "by list price" in driven.cost("F1")


@pytest.mark.parametrize("lane", ["BUDGET", "TOKENS", "TURNS"])
def test_d02_a_cap_ends_it(driven: RealRound, lane: str) -> None:
    """It holds no cap itself: roundkit follows its session, and ends it."""
    run = driven.run(lane)
    assert run.end_reason == "budget"
    assert run.usage.turns is not None
    assert 2 <= run.usage.turns <= 4
    assert run.usage.tokens.total == 1100 * run.usage.turns
    assert run.usage.partial


@pytest.mark.parametrize(("lane", "word"), [("E500", "demand"), ("E429", "429")])
def test_d02_a_provider_that_fails_is_no_end_of_the_agent(driven: RealRound, lane: str, word: str) -> None:
    run = driven.run(lane)
    assert run.end_reason == "provider-error"
    assert word in run.detail


def test_d02_a_failure_that_passes_is_none(driven: RealRound) -> None:
    assert driven.run("AGAIN").end_reason == "exited"


def test_d02_what_it_is_denied_is_not_done(driven: RealRound) -> None:
    """Its own sandbox is off: the lane's boundary is the one that holds."""
    run = driven.run("DENIED")
    assert run.end_reason == "exited"
    assert "example.com:80" in run.detail
    assert driven.submitted("DENIED") == 1
    assert not (driven.folder.lanes / "beside").exists()
    assert "x" not in (driven.folder.clone("DENIED") / ".git" / "config").read_text().splitlines()


def test_fault_22_d02_a_stream_that_hangs_ends_at_the_deadline(driven: RealRound) -> None:
    run, record = driven.run("HANGS"), driven.attempt("HANGS")
    assert (run.end_reason, record.phase, record.actual) == ("deadline", "claimed", None)
    assert driven.submitted("HANGS") == 1
    assert run.usage.tokens.total == 2 * 1100


def test_d02_at_the_deadline_its_children_are_gone_too(driven: RealRound) -> None:
    run = driven.run("LATE")
    assert run.end_reason == "deadline"
    assert run.usage.turns is not None
    assert run.usage.tokens.total == 1100 * run.usage.turns
    commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert not [command for command in commands if command in (["sleep", "601"], ["sleep", "501"])]


def test_d02_what_it_runs_does_not_have_its_key(driven: RealRound) -> None:
    variables = driven.folder.clone("DENIED") / ".roundkit" / "scratch" / "variables"
    names = {line.partition("=")[0] for line in variables.read_text().splitlines()}
    assert "HTTP_PROXY" in names
    assert "OPENAI_API_KEY" not in names


def test_d02_no_key_is_left_behind(driven: RealRound) -> None:
    assert {request.key for request in driven.provider.requests} == {f"Bearer {KEY}"}
    for path in driven.folder.root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert KEY.encode() not in path.read_bytes(), path
