"""How a trial's agent ended, what its checks say together, and what a pilot may start, as tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from roundkit.models.agent_run import AgentRun, LogDigest, Usage
from roundkit.models.pilot_trial import CheckResult
from roundkit.rules.pilot_outcome import acceptance_of, process_outcome, prompt_bytes
from roundkit.rules.pilot_programs import expanded, program_problem

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def ended(reason: Any, exit_code: int | None = None, detail: str = "") -> AgentRun:
    log = LogDigest(sha256="0" * 64, bytes=0, kept_bytes=0)
    return AgentRun(
        argv_sha256="0" * 64, cli_version=None, started_utc=NOW, ended_utc=NOW, exit_code=exit_code,
        end_reason=reason, detail=detail, usage=Usage(), denied=None, stdout=log, stderr=log,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("run", "failure", "told"),
    [
        (ended("exited", 0), None, ("completed", "")),
        (ended("exited", 3, "exit code 3: broke"), None, ("error", "exit code 3: broke")),
        (ended("exited", 3), None, ("error", "exit code 3")),
        (ended("deadline", None, "its deadline was reached"), None, ("timeout", "its deadline was reached")),
        (ended("provider-error", 1, "429"), None, ("error", "provider-error: 429")),
        (ended("budget"), None, ("error", "budget")),
        (ended("killed"), None, ("error", "killed")),
        (ended("preflight", None, "never started"), None, ("error", "preflight: never started")),
        (ended("exited", 0), "the gateway broke: no", ("error", "the gateway broke: no")),
    ],
)
def test_how_a_process_ended(run: AgentRun, failure: str | None, told: tuple[str, str]) -> None:
    assert process_outcome(run, failure) == told


@pytest.mark.parametrize(
    ("outcomes", "together", "reason"),
    [
        ("pp", "passed", None),
        ("pf", "failed", None),
        ("fu", "failed", None),
        ("pu", "unavailable", "c1: because"),
        ("uu", "unavailable", "c0: because; c1: because"),
    ],
)
def test_what_checks_say_together(outcomes: str, together: str, reason: str | None) -> None:
    names: dict[str, Any] = {"p": "passed", "f": "failed", "u": "unavailable"}
    checks = [
        CheckResult(check=f"c{number}", outcome=names[one], reason="because" if one == "u" else None)
        for number, one in enumerate(outcomes)
    ]
    found = acceptance_of("0" * 64, checks)
    assert (found.outcome, found.reason) == (together, reason)


@pytest.mark.parametrize(
    ("argv", "has_files", "good"),
    [
        (["{python}", "-m", "unittest"], False, True),
        (["make", "test"], False, True),
        (["{files}/tool"], True, True),
        (["{python}", "{files}/tool.py"], True, True),
        (["{python}", "{files}/tool.py"], False, False),
        (["{files}/tool"], False, False),
        (["{files}/../tool"], True, False),
        (["{files}"], True, False),
        (["/usr/bin/python3"], True, False),
        (["./tool"], True, False),
        (["bin/tool"], True, False),
        (["{other}"], True, False),
        ([""], True, False),
    ],
)
def test_p14_what_a_pilot_may_start(argv: list[str], has_files: bool, good: bool) -> None:
    assert (program_problem(argv, has_files=has_files) is None) == good


def test_placeholders_and_prompts() -> None:
    assert expanded(["{python}", "a{files}b", "{x}"], python="/p", files="/f") == ("/p", "a/fb", "{x}")
    assert prompt_bytes(None, b"task\n") == b"task\n"
    assert prompt_bytes(b"guide\n", b"task\n") == b"guide\n\ntask\n"
