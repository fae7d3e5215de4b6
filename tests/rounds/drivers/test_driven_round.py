"""One round whose lanes are filled by both tools at once, from the launch to the audited evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.agent_rounds import MODEL, AgentRound, agent_round
from support.agent_stubs import CLAUDE_MODEL, CLAUDE_VERSION, CODEX_MODEL, CODEX_VERSION, seen
from support.killing import run_to_end
from support.synthetic import knob, reachable_folder

from roundkit.agents.lane_boundary import HOME
from roundkit.analysis.rows import attempt_rows
from roundkit.audit import audit_round
from roundkit.evidence import find_evidence, open_evidence
from roundkit.models.ledger import RoundLedger
from roundkit.report import lanes_table

CAPS = {"turns": 20, "micro_usd": 90_000, "wall_s": 300}
SCRIPT = {
    "C1": [[{"write": {"knobs/C1.json": knob(0.4)}}, {"submit": True, "denied": True}]],
    "X1": [[{"write": {"knobs/X1.json": knob(-0.3)}}, {"submit": True}]],
}
KNOWN_VARIABLES = (
    "CLAUDE_", "CODEX_", "BASH_", "XDG_", "API_TIMEOUT_MS", "PATH", "LANG", "HOME", "TMPDIR", "PWD", "LC_",
)  # fmt: skip


@dataclass(frozen=True)
class Closed:
    """The round once it is closed, with everything that was said."""

    round: AgentRound
    launched: str
    status: str
    evidence: Path
    ledger: RoundLedger


@pytest.fixture(scope="module")
def closed() -> Iterator[Closed]:
    """Both tools at once in one round, under a serve of its own, closed."""
    with reachable_folder() as root:
        made = agent_round(
            root, {"C1": "claude", "X1": "codex", "P": "none"}, SCRIPT,
            lane={"attempt_worst_case": CAPS},
            agent={"effort": "low", "allowed_tools": ["Bash(make test)"]},
        )  # fmt: skip
        leases, folder = root / "leases", str(made.folder.root)
        launched = run_to_end(leases, "launch", folder, "--drive", "all", "--with-serve")
        status = run_to_end(leases, "status", folder)
        run_to_end(leases, "close", folder)
        [evidence] = find_evidence(made.repo.root / "evidence")
        yield Closed(made, launched, status, evidence, open_evidence(evidence).ledger)


def test_d01_what_agents_hand_over_is_measured(closed: Closed) -> None:
    verdicts = {ticket.lane: ticket.verdict.verdict for ticket in closed.ledger.tickets if ticket.verdict}
    assert verdicts == {"C1": "pass", "X1": "fail"}
    assert {ticket.provenance for ticket in closed.ledger.tickets} == {"stub"}
    assert closed.ledger.advanced


def test_d01_claude_is_given_its_lane_and_nothing_else(closed: Closed) -> None:
    clone = closed.round.folder.clone("C1")
    given = seen(closed.round.root, "C1")
    argv = given["argv"]
    assert argv[:19] == [
        str(closed.round.tools / "claude"), "-p", "--output-format", "stream-json", "--verbose",
        "--model", MODEL, "--effort", "low", "--max-turns", "20", "--max-budget-usd", "0.090000",
        "--permission-mode", "dontAsk", "--strict-mcp-config", "--setting-sources", "", "--allowedTools",
    ]  # fmt: skip
    allowed = set(argv[19:])
    assert {f"{tool}(/{clone}/knobs/C1.json)" for tool in ("Edit", "Write")} <= allowed
    assert {"Bash(.roundkit/round submit)", "Bash(.roundkit/round status *)", "Bash(make test)"} <= allowed
    assert not {"Bash", "Edit", "Write", "Bash(*)"} & allowed
    assert "--worktree" not in argv
    environment = given["env"]
    assert environment["CLAUDE_CONFIG_DIR"] == str(HOME / ".claude")
    for name in ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"):
        assert environment[name] == "1"
    _check_common(given, clone, wait_s=100)


def test_d01_codex_is_given_its_lane_and_nothing_else(closed: Closed) -> None:
    clone = closed.round.folder.clone("X1")
    given = seen(closed.round.root, "X1")
    assert given["argv"] == [
        str(closed.round.tools / "codex"), "exec", "--json", "-C", str(clone), "-c", "approval_policy=never",
        "--dangerously-bypass-approvals-and-sandbox", "--model", MODEL, "-",
    ]  # fmt: skip
    assert given["env"]["CODEX_HOME"] == str(HOME / ".codex")
    assert not given["env"]["CODEX_HOME"].startswith("/tmp")
    assert 'model_reasoning_effort = "low"' in given["config"]
    _check_common(given, clone, wait_s=8)


def _check_common(given: dict[str, Any], clone: Path, *, wait_s: int) -> None:
    environment, prompt = given["env"], given["stdin"]
    assert given["cwd"] == str(clone)
    assert environment["HOME"] == str(HOME)
    assert environment["TMPDIR"] == str(clone / ".roundkit/scratch")
    assert [name for name in environment if not name.startswith(KNOWN_VARIABLES)] == []
    for needed in (str(clone), "can be faster", f"--wait {wait_s}", "bench/**", "Deadline: 20", "Turns: 20"):
        assert needed in prompt
    assert f"longer than {wait_s} seconds" in prompt


def test_d06_cost_lines_name_harness_and_model_everywhere(closed: Closed) -> None:
    costs = {lane.lane: lane.cost for lane in closed.ledger.lanes}
    counted = "2 turns; 400 tokens; 0.008000 USD as its tool reports it"
    assert costs["C1"] == f"claude, model {CLAUDE_MODEL}: {counted}; ended: exited"
    assert costs["X1"] == f"codex, model {CODEX_MODEL}: 2 turns; 380 tokens; unknown cost; ended: exited"
    assert costs["P"] == ""
    shown = [row[-1] for row in lanes_table(open_evidence(closed.evidence)).rows]
    assert shown == [costs["C1"], costs["X1"], None]
    for line in (costs["C1"], costs["X1"]):
        assert line in closed.status
        assert line in closed.launched
    assert [lane.cost_micro_usd for lane in closed.ledger.lanes] == [8_000, None, None]


def test_d06_every_attempt_has_its_record_and_the_evidence_audits(closed: Closed) -> None:
    report = audit_round(closed.evidence)
    assert report.passed, report.failures
    records = {record.binding.lane: record for record in closed.ledger.attempts}
    for lane, version in (("C1", CLAUDE_VERSION), ("X1", CODEX_VERSION)):
        record = records[lane]
        run = record.run
        assert run is not None
        assert (record.phase, record.provenance) == ("settled", "stub")
        assert (run.end_reason, run.exit_code, run.cli_version) == ("exited", 0, version)
        assert record.reserved_utc <= run.started_utc <= run.ended_utc
        assert run.usage.session_id is not None
        log = closed.round.folder.attempt_log(lane, 1)
        assert (log / "stdout").stat().st_size == run.stdout.bytes == run.stdout.kept_bytes
        assert run.usage.session_id in (log / "stdout").read_text()
    rows = {row["lane"]: row for row in attempt_rows(open_evidence(closed.evidence))}
    assert (rows["C1"]["end_reason"], rows["C1"]["usd_basis"]) == ("exited", "reported")
    assert (rows["X1"]["model_reported"], rows["X1"]["usd_basis"]) == (CODEX_MODEL, "none")
    assert (rows["X1"]["tokens_cached_input"], rows["X1"]["actual_tokens"]) == (80, 380)
    denied = {lane: record.run.denied for lane, record in records.items() if record.run}
    assert denied == {"C1": 1, "X1": None}
