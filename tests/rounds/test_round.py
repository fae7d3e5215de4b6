"""The straight path: one round of eight lanes, from submission to the advanced incumbent."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.synthetic import CampaignRepo, campaign_repo, knob, scripted_lane

from roundkit.audit import audit_round
from roundkit.core.git import Repository, identity_environment
from roundkit.core.yamlfile import load_yaml
from roundkit.host.lease import LEASE_ROOT_VARIABLE
from roundkit.measure.trees import remove_tree
from roundkit.models.ledger import CompositionStep, LaneRecord, TicketRecord
from roundkit.rounds.close import CloseOutcome, close
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.serve import serve

from .conftest import force_entry, written

LANES = ("L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8")


@dataclass(frozen=True)
class Closed:
    repo: CampaignRepo
    folder: RoundFolder
    outcome: CloseOutcome
    lines: tuple[str, ...]

    def lane(self, lane: str) -> LaneRecord:
        return next(record for record in self.outcome.ledger.lanes if record.lane == lane)

    def ticket(self, lane: str) -> TicketRecord:
        return next(ticket for ticket in self.outcome.ledger.tickets if ticket.lane == lane)

    def step(self, lane: str) -> CompositionStep:
        return next(step for step in self.outcome.ledger.composition if step.lane == lane)


@pytest.fixture(scope="module")
def closed() -> Iterator[Closed]:
    """L1, L2 orthogonal; L3, L4 share a bottleneck; L5 slower; L6 a no-op; L7 breaks; L8 cheats."""
    root = Path(tempfile.mkdtemp(prefix="roundkit-test-")).resolve()
    root.chmod(0o711)
    before = os.environ.get(LEASE_ROOT_VARIABLE)
    os.environ[LEASE_ROOT_VARIABLE] = str(root / "leases")
    try:
        repo = campaign_repo(root, LANES, shared=[("L3", "L4")])
        folder, _ = repo.launched(root / "round")
        values = {"L1": 0.6, "L2": 0.5, "L3": 0.9, "L4": 0.8, "L5": -0.5}
        for lane, value in values.items():
            scripted_lane(folder.clone(lane), {f"knobs/{lane}.json": knob(value)})
        scripted_lane(folder.clone("L6"), {"knobs/L6.json": knob(0.0) + "\n"})
        scripted_lane(folder.clone("L7"), {"knobs/L7.json": '{"value": 0, "mode": "broken"}'})
        entry, blobs = written("bench/bench.py", b"print('fast')\n")
        force_entry(folder, "L8", [entry], blobs=blobs)
        lines: list[str] = []
        serve(folder, until="idle", report=lines.append)
        yield Closed(repo, folder, close(folder, report=lines.append), tuple(lines))
    finally:
        if before is None:
            del os.environ[LEASE_ROOT_VARIABLE]
        else:
            os.environ[LEASE_ROOT_VARIABLE] = before
        remove_tree(root)


def test_r01_an_honest_gain_is_measured_selected_composed_rerun_and_advances(closed: Closed) -> None:
    ticket = closed.ticket("L1")
    assert ticket.verdict is not None
    assert ticket.verdict.verdict == "pass"
    assert ticket.verdict.gain == pytest.approx(0.6 * 30 / 250, abs=0.01)
    assert closed.lane("L1").selected == ticket.ticket
    assert closed.step("L1").kept
    rerun = closed.outcome.ledger.rerun[0]
    assert (rerun.kind, rerun.verdict.verdict) == ("rerun", "pass")
    assert closed.outcome.ledger.advanced
    assert closed.outcome.ledger.gain == rerun.verdict.gain
    assert closed.outcome.new_incumbent == closed.repo.repository.resolve("roundkit/r01")


def test_r03_the_cheat_is_rejected_and_the_benchmark_is_what_it_was(closed: Closed) -> None:
    assert closed.ticket("L8").reject_cause == "protected-path"
    repository = closed.repo.repository
    assert closed.outcome.new_incumbent is not None
    before = repository.read_blob(
        closed.repo.repository.git("rev-list", "--max-parents=0", "main").text, "bench/bench.py"
    )
    assert repository.read_blob(closed.outcome.new_incumbent, "bench/bench.py") == before


def test_r05_a_regression_fails_and_a_no_op_is_not_measured(closed: Closed) -> None:
    regression, no_op = closed.ticket("L5").verdict, closed.ticket("L6").verdict
    assert regression is not None
    assert no_op is not None
    assert (regression.verdict, regression.reason) == ("fail", "regression")
    assert no_op.verdict == "not-measured"
    assert closed.lane("L5").entry_status == "rejected"
    assert closed.lane("L6").entry_status == "rejected"


def test_r06_of_two_overlapping_gains_the_second_fails_and_returns_to_planned(closed: Closed) -> None:
    first, second = closed.step("L3"), closed.step("L4")
    assert first.kept
    assert not second.kept
    assert closed.lane("L4").outcome == "skipped"
    assert closed.lane("L4").entry_status == "planned"
    assert second.ratio.value is not None
    assert second.ratio.value < 0.2


def test_r06_orthogonal_gains_have_a_ratio_near_one(closed: Closed) -> None:
    ratio = closed.step("L2").ratio
    assert ratio.basis == "reused-selected"
    assert ratio.value is not None
    assert 0.8 < ratio.value < 1.2
    assert closed.step("L3").ratio.basis == "by-construction"


def test_r09_close_moves_the_state_appends_revisions_and_keeps_comments(closed: Closed) -> None:
    text = closed.repo.campaign_file.read_text()
    content = load_yaml(text.encode(), place="campaign.yaml")
    assert content["search_state"]["incumbent_revision"] == closed.outcome.new_incumbent
    assert content["search_state"]["last_round_ledger"] == "evidence/knobs/rounds/r01/round-ledger.json"
    rows = {row["entry"]: (row["from"], row["to"], row["reason"]) for row in content["search_plan_revisions"]}
    assert rows["E-L1"] == ("planned", "kept", "in the new incumbent of round r01")
    assert rows["E-L4"] == ("planned", "planned", "lost-in-composition")
    assert rows["E-L5"] == ("planned", "rejected", "no-passing-ticket")
    assert {row["entry"] for row in content["negative_memory"]} == {"E-L5", "E-L6", "E-L7", "E-L8"}
    assert "# The owner's words: make the knobs fast." in text
    assert "# what judges is nobody's to change" in text
    assert list(content) == list(load_yaml(_original(closed).encode(), place="original"))


def _original(closed: Closed) -> str:
    from support.program import CAMPAIGN

    return CAMPAIGN.replace("PYTHON", "auto", 1)


def test_r20_a_broken_build_is_rejected_with_the_tail_of_its_log(closed: Closed) -> None:
    ticket = closed.ticket("L7")
    assert ticket.reject_cause == "build"
    assert "knobs/L7.json is broken" in (ticket.reject_detail or "")
    assert ticket.experiments == ()


def test_the_chain_has_one_commit_a_lane_with_its_ticket_and_evidence(closed: Closed) -> None:
    repository = Repository(closed.repo.root)
    kept = [step.ticket for step in closed.outcome.ledger.composition if step.kept]
    log = repository.git(
        "log",
        "--reverse",
        "--format=%(trailers:key=Roundkit-Ticket,valueonly,separator=)",
        "main..roundkit/r01",
    )
    assert log.text.split() == kept
    trailers = repository.git(
        "log", "-1", "--format=%(trailers:key=Roundkit-Evidence-Index,valueonly)", "roundkit/r01"
    )
    assert trailers.text.strip() == closed.outcome.index_digest


def test_the_evidence_audits(closed: Closed) -> None:
    report = audit_round(
        closed.outcome.evidence, repository=closed.repo.root, expect=closed.outcome.index_digest
    )
    assert [check for check in report.checks if not check.passed] == []


def test_close_run_again_repeats_nothing_and_says_the_same(closed: Closed) -> None:
    lines: list[str] = []
    again = close(closed.folder, report=lines.append)
    assert again == closed.outcome
    assert not any("measuring" in line for line in lines)


def test_close_run_again_leaves_what_its_owner_committed_on_the_branch(closed: Closed) -> None:
    repository, branch = closed.repo.repository, "refs/heads/roundkit/r01"
    tip = repository.git("rev-parse", branch).text
    identity = identity_environment("owner", "owner@localhost", "2026-01-01T00:00:00Z")
    more = repository.git("commit-tree", f"{tip}^{{tree}}", "-p", tip, "-m", "more", env=identity).text
    repository.git("update-ref", branch, more)
    try:
        assert close(closed.folder, report=lambda _line: None) == closed.outcome
        assert repository.git("rev-parse", branch).text == more
    finally:
        repository.git("update-ref", branch, tip)
