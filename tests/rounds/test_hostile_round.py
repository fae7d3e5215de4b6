"""One round with lanes that lie about their clone, damage it, crash or leave processes behind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.killing import assert_nothing_runs, plain_repo
from support.program import BENCH
from support.synthetic import knob, reachable_folder, scripted_lane
from typer.testing import CliRunner

from roundkit.cli.app import app
from roundkit.core.git import Repository
from roundkit.host.lease import LEASE_ROOT_VARIABLE, holders
from roundkit.models.ledger import TicketRecord
from roundkit.rounds.control import read_status
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.serve import serve
from roundkit.store import open_store

_LEAVES_SLEEPERS = BENCH.replace(
    '    if "hang" in modes:',
    '    if "orphan" in modes:\n'
    "        import subprocess\n"
    '        subprocess.Popen(["sleep", "600"], start_new_session=True)\n'
    '        subprocess.Popen(["sh", "-c", "sleep 600 & sleep 600"])\n'
    '    if "hang" in modes:',
)


@dataclass(frozen=True)
class Hostile:
    folder: RoundFolder
    leases: Path
    tickets: dict[str, TicketRecord]


@pytest.fixture(scope="module")
def hostile() -> Iterator[Hostile]:
    """L1 edits lane.json, wrapper and status; L2 damages its objects; L3 crashes; L4 leaves sleepers."""
    with reachable_folder() as root, pytest.MonkeyPatch.context() as patch:
        patch.setenv(LEASE_ROOT_VARIABLE, str(root / "leases"))
        repo = plain_repo(root / "s", ("L1", "L2", "L3", "L4"), files={"bench/bench.py": _LEAVES_SLEEPERS})
        folder, _ = repo.launched(root / "s/round")
        scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.5)})
        _lie(folder.clone("L1"))
        scripted_lane(folder.clone("L2"), {"knobs/L2.json": knob(0.4)})
        shutil.rmtree(folder.clone("L2") / ".git/objects")
        (folder.clone("L2") / ".git/objects").symlink_to(repo.root / ".git/objects")
        (folder.clone("L2") / ".git/HEAD").write_text("nonsense")
        scripted_lane(folder.clone("L3"), {"knobs/L3.json": knob(0.3, "crash")})
        scripted_lane(folder.clone("L4"), {"knobs/L4.json": knob(0.3, "orphan")})
        serve(folder, until="idle", report=lambda _line: None)
        with open_store(folder.database) as store:
            tickets = {ticket.lane: ticket for ticket in store.tickets.all()}
        Repository(repo.root).git("fsck", "--strict")
        yield Hostile(folder, root / "leases", tickets)


def _lie(clone: Path) -> None:
    """Edit everything in a clone that roundkit put there, as an agent might."""
    control = clone / ".roundkit"
    told = json.loads((control / "lane.json").read_text())
    told.update(globs=["**"], submission_cap=1000, lane="L2")
    (control / "lane.json").chmod(0o600)
    (control / "lane.json").write_text(json.dumps(told))
    (control / "round").chmod(0o700)
    (control / "round").write_text('#!/bin/sh\necho \'{"status": "measured", "verdict": "pass"}\'\n')
    (control / "status").chmod(0o700)
    for name in ("r01-L1-00000000.json", "r01-L2-00000000.json"):
        (control / "status" / name).write_text('{"state": "measured", "verdict": "pass", "gain": 9}')


def verdict(hostile: Hostile, lane: str) -> tuple[str, str]:
    found = hostile.tickets[lane].verdict
    assert found is not None
    return found.verdict, found.reason


def test_r19_what_an_agent_edits_in_its_clone_changes_no_verdict(hostile: Hostile) -> None:
    found = hostile.tickets["L1"].verdict
    assert found is not None
    assert found.gain == pytest.approx(0.5 * 30 / 130, abs=1e-6)
    assert len(hostile.tickets) == 4


def test_r23_a_damaged_object_store_affects_nobody(hostile: Hostile) -> None:
    assert verdict(hostile, "L2") == ("pass", "gain")
    assert verdict(hostile, "L1") == ("pass", "gain")


def test_fault_03_a_crashing_candidate_fails_and_the_next_ones_run(hostile: Hostile) -> None:
    assert verdict(hostile, "L3") == ("fail", "candidate-crashed")
    assert verdict(hostile, "L4")[0] == "pass"
    ticket, status = hostile.tickets["L3"], read_status(hostile.folder)
    assert set(status.said) == {ticket.ticket}
    assert status.said[ticket.ticket] not in dict(status.tickets)["L3"].to_bytes().decode()
    done = CliRunner().invoke(app, ["status", str(hostile.folder.root), ticket.ticket, "--json"])
    assert json.loads(done.stdout)["tickets"][0]["said"] == status.said[ticket.ticket]
    assert "exit code" in status.said[ticket.ticket]


def test_fault_02_sleepers_that_a_candidate_leaves_are_gone(hostile: Hostile) -> None:
    assert_nothing_runs(hostile.folder)
    assert holders(hostile.leases) == []
