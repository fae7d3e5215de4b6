"""D08: two releases of a public package, lanes from their differences, to the report: docs/example.md."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docs.reading import ROOT
from worked_example.figures import BEGIN, END, Replayed

pytestmark = pytest.mark.slow

PARTS = ["grammar", "versions", "requirements", "everything else"]


def test_d08_the_page_of_two_releases_of_a_public_package_in_few_pairs(open_folder: Path) -> None:
    page = open_folder / "example.md"
    shutil.copy(ROOT / "docs" / "example.md", page)
    shutil.copytree(ROOT / "templates", open_folder / "templates")
    bench = open_folder / "templates/releases/packaging/bench.py"
    asked, fewer = re.subn(r"(\w+): (\d+)0(?=[,}])", r"\1: \2", bench.read_text())
    assert fewer == 5, "a tenth of the questions of each kind"
    bench.write_text(asked)
    done = subprocess.run(
        [sys.executable, "-m", "worked_example", "--page", page, "--place", open_folder, "--pairs", "6"],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests"), "ROUNDKIT_LEASE_ROOT": f"{open_folder}/leases"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-3000:]
    assert done.stdout.count("audit: every check passed") == 2
    judged, agreed = (
        Replayed.read(open_folder / "build/example" / name) for name in ("round-all", "round-agreed")
    )
    for replayed in (judged, agreed):
        assert [replayed.part(lane) for lane in replayed.ledger.lanes] == PARTS
        assert {ticket.state for ticket in replayed.ledger.tickets} == {"measured"}
        assert {ticket.provenance for ticket in replayed.ledger.tickets} == {"replay"}
    reasons = {
        name: {ticket.lane: ticket.verdict.reason for ticket in replayed.ledger.tickets if ticket.verdict}
        for name, replayed in (("judged", judged), ("agreed", agreed))
    }
    # Its authors changed which pre-releases are accepted: an answer, and no noise can hide it.
    assert reasons["judged"]["L2"] == "candidate-invalid"
    assert "candidate-invalid" not in reasons["agreed"].values()
    for name in ("round-all", "round-agreed"):
        assert (open_folder / "build/example" / name / "report.html").stat().st_size > 100_000
    written = page.read_text().partition(BEGIN)[2].partition(END)[0]
    assert all(part in written for part in PARTS)
    assert "load average" in " ".join(written.split())
