"""M04 through a whole round: an experiment ends where its looks say, and an auditor finds the same end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.synthetic import campaign_repo, knob, scripted_lane

from roundkit.audit import audit_round
from roundkit.core.canonical import canonical_bytes, digest_bytes
from roundkit.models.ledger import RoundLedger
from roundkit.rounds.close import close
from roundkit.rounds.serve import serve

EARLY = {
    "first_look": 6, "every": 2, "spending_exponent": 2.0, "futility_power": 0.05, "futility_optimism": 1.5,
}  # fmt: skip


@pytest.fixture
def evidence(open_folder: Path, lease_root: Path) -> tuple[RoundLedger, Path]:
    """A closed round of up to 16 pairs with one large gain and one candidate that changes nothing."""
    repo = campaign_repo(open_folder, ("L1", "L2"))
    early: dict[str, Any] = {"ab_ba_pairs": 16, "early_stopping": EARLY, "session_checks": 1}
    repo.edit_campaign(lambda plan: plan["test_plan"].update(early))
    folder, _ = repo.launched(open_folder / "round")
    scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.6)})
    scripted_lane(folder.clone("L2"), {"knobs/L2.json": knob(0.0) + "\n"})
    serve(folder, until="idle", report=lambda _line: None)
    outcome = close(folder, report=lambda _line: None)
    return outcome.ledger, outcome.evidence


@pytest.mark.slow
def test_m04_early_stopping_through_a_round(evidence: tuple[RoundLedger, Path]) -> None:
    ledger, folder = evidence
    verdicts = {ticket.lane: ticket.verdict for ticket in ledger.tickets}
    gain, none = verdicts["L1"], verdicts["L2"]
    assert gain is not None
    assert none is not None
    assert (gain.verdict, gain.pairs, gain.looks[-1].stop) == ("pass", 6, "gain")
    assert gain.z_required == gain.looks[-1].boundary > 2.0
    assert gain.session_sd is not None
    assert none.verdict == "not-measured"
    assert none.looks[-1].stop in {"futility", "last"}
    # What is called the round's gain has every pair, so that stopping on a gain does not flatter it.
    assert [(rerun.verdict.pairs, rerun.verdict.looks) for rerun in ledger.rerun] == [(16, ())]
    assert ledger.aa_checks[0].delta is not None
    report = audit_round(folder)
    assert report.passed, report.failures
    _forge(folder, _cut)
    assert "pairs at which it ended" in _looks(folder)
    _forge(folder, _unweaken)
    assert "noise between sessions" in _looks(folder)


def _looks(folder: Path) -> str:
    return " ".join(check.detail for check in audit_round(folder).failures if check.name == "looks")


def _forge(folder: Path, change: Any) -> None:
    """Change the experiment of the candidate that changes nothing, and seal the evidence again."""
    path = next(one for one in (folder / "experiments").iterdir() if one.name.startswith("r01-L2"))
    record = json.loads(path.read_bytes())
    change(record)
    path.write_bytes(canonical_bytes(record))
    index = json.loads((folder / "index.json").read_bytes())
    row = next(row for row in index["files"] if row["path"] == f"experiments/{path.name}")
    row.update(sha256=digest_bytes(path.read_bytes()), size=path.stat().st_size)
    data = canonical_bytes(index)
    (folder / "index.json").write_bytes(data)
    (folder / "index.json.sha256").write_text(f"{digest_bytes(data)}  index.json\n")


def _cut(record: Any) -> None:
    last = record["trials"][-1]["planned"]["pair"]
    record["trials"] = [trial for trial in record["trials"] if trial["planned"]["pair"] != last]


def _unweaken(record: Any) -> None:
    record["session_noise"] = None
