"""D02 and D06: one round with both real agents, from the command line, to audited evidence."""

from __future__ import annotations

import pytest
from support.killing import run_to_end
from support.provider_stub import Say, Shell, Tool
from support.real_agents import KEY, Cell, real_round
from support.synthetic import knob

from roundkit.audit import audit_round
from roundkit.evidence import find_evidence, open_evidence

pytestmark = [pytest.mark.clis, pytest.mark.usefixtures("agents")]

PRICES = {"input": 1_000_000, "cached_input": 100_000, "cache_write": 0, "output": 10_000_000}


def claude(lane: str, value: float) -> Cell:
    file = f"{{clone}}/knobs/{lane}.json"
    edit = [Tool("Read", {"file_path": file}), Tool("Write", {"file_path": file, "content": knob(value)})]
    return Cell("claude", [*edit, Shell(".roundkit/round submit"), Say("One ticket.")])


def codex(lane: str, value: float) -> Cell:
    edit = Shell(f"echo '{knob(value)}' > knobs/{lane}.json")
    return Cell(
        "codex", [edit, Shell(".roundkit/round submit"), Say("One ticket.")], agent={"prices": PRICES}
    )


def test_d02_d06_both_agents_in_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = {
        "C1": claude("C1", 0.4),
        "C2": claude("C2", -0.3),
        "X1": codex("X1", 0.3),
        "X2": codex("X2", -0.2),
    }
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    with real_round(cells) as made:
        leases, folder = made.repo.root.parent / "leases", str(made.folder.root)
        launched = run_to_end(leases, "launch", folder, "--drive", "all", "--with-serve")
        run_to_end(leases, "close", folder)
        [evidence] = find_evidence(made.repo.root / "evidence")
        ledger = open_evidence(evidence).ledger
        verdicts = {ticket.lane: ticket.verdict.verdict for ticket in ledger.tickets if ticket.verdict}
        assert verdicts == {"C1": "pass", "C2": "fail", "X1": "pass", "X2": "fail"}, launched
        assert "C1: claude, model claude-sonnet-4-5" in launched
        assert "X1: codex, model stub-model" in launched
        assert {ticket.provenance for ticket in ledger.tickets} == {"stub"}
        assert audit_round(evidence).passed
        for path in evidence.rglob("*"):
            assert path.is_dir() or KEY.encode() not in path.read_bytes()
