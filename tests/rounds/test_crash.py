"""A killed coordinator loses nothing: the short form. The loops over every transition are in tests/slow."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.killing import (
    Scene,
    assert_nothing_runs,
    assert_one_verdict_each,
    chain,
    decisions,
    run_to_end,
    run_until_killed,
    scene,
)

from roundkit.audit import audit_round
from roundkit.models.ledger import RoundLedger
from roundkit.store import open_store

SERVE_POINTS = (3, 5, 8)
"""After an intake, the start of an A/A check, and the start of a measurement."""


@pytest.fixture
def served(open_folder: Path) -> Scene:
    return scene(open_folder / "s", {"L1": 0.5, "L2": 0.4})


@pytest.mark.slow
def test_r15_serve_killed_at_some_transitions_gives_one_verdict_a_ticket(served: Scene) -> None:
    for where in SERVE_POINTS:
        assert run_until_killed(where, served.leases, "serve", served.folder.root, "--until-idle")
        assert_nothing_runs(served.folder)
    run_to_end(served.leases, "serve", served.folder.root, "--until-idle")
    assert_one_verdict_each(served.folder, served.leases, served.tickets)


@pytest.mark.slow
def test_r16_close_killed_in_mid_measurement_decides_the_same(served: Scene) -> None:
    run_to_end(served.leases, "serve", served.folder.root, "--until-idle")
    served.keep()
    run_to_end(served.leases, "close", served.folder.root)
    wanted = close_result(served)
    served.put_back()
    # Killed while step 2 and the rerun were being measured, and before campaign.yaml was in its place.
    for where in (4, 5, -4):
        assert run_until_killed(where, served.leases, "close", served.folder.root)
        assert_nothing_runs(served.folder)
    run_to_end(served.leases, "close", served.folder.root)
    assert close_result(served) == wanted
    with open_store(served.folder.database, read_only=True) as store:
        assert [subject for _, subject in store.experiments.unfinished()] == ["step-2-L2", "rerun"]


def close_result(scene: Scene) -> tuple[object, ...]:
    """Return what a close left that must not depend on how often it was killed."""
    evidence = scene.repo.root / "evidence/knobs/rounds/r01"
    ledger = RoundLedger.from_bytes((evidence / "round-ledger.json").read_bytes(), place="ledger")
    report = audit_round(evidence, repository=scene.repo.root)
    assert [check for check in report.checks if not check.passed] == []
    campaign = scene.repo.campaign_file.read_text()
    rows = sorted(line for line in campaign.splitlines() if line.strip().startswith(("to:", "status:")))
    return decisions(ledger), chain(scene.repo, "roundkit/r01"), rows
