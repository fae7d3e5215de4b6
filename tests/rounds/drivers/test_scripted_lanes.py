"""Every scripted lane, played by a stub of each tool: what it hands over, and what intake makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.agent_rounds import AgentRound, agent_round
from support.agent_stubs import told
from support.synthetic import knob

from roundkit.models.ledger import TicketRecord
from roundkit.models.round_plan import HarnessName
from roundkit.rounds.intake import take_in
from roundkit.store import open_store

from ..conftest import intake_of

SUBMIT: dict[str, Any] = {"submit": True}
JUDGE = """
import json, pathlib
entry = max(pathlib.Path(".roundkit/outbox").iterdir(), key=lambda path: path.stat().st_mtime)
manifest = json.loads((entry / "manifest.json").read_text())
manifest["entries"][0]["path"] = "bench/bench.py"
(entry / "manifest.json").write_text(json.dumps(manifest))
"""


def write(path: str, content: str) -> dict[str, Any]:
    return {"write": {path: content}}


SCRIPT = {
    "gain": [[write("knobs/gain.json", knob(0.4)), SUBMIT]],
    "loss": [[write("knobs/loss.json", knob(-0.3)), SUBMIT]],
    "same": [[SUBMIT, write("knobs/same.json", knob(0.0) + "\n"), SUBMIT, SUBMIT]],
    "stray": [
        [
            write("bench/bench.py", "print('fast')"),
            write("knobs/gain.json", knob(0.9)),
            SUBMIT,
            write("knobs/stray.json", knob(0.1)),
            SUBMIT,
        ]
    ],
    "many": [[step for n in range(3) for step in (write("knobs/many.json", knob(n / 10 + 0.1)), SUBMIT)]],
    "forged": [[write("knobs/forged.json", knob(0.2)), SUBMIT, {"python": JUDGE}]],
}


@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_d01_a_stub_performs_every_scripted_lane(
    open_folder: Path, lease_root: Path, harness: HarnessName
) -> None:
    made = agent_round(open_folder, dict.fromkeys(SCRIPT, harness), SCRIPT, lane={"submission_cap": 2})
    driven, lines = made.drive(harness)
    assert (driven.refused, driven.failed) == ((), ()), lines

    [gain] = told(made.root, "gain")
    assert gain["status"] == "queued"
    nothing, first, again = told(made.root, "same")
    assert (nothing["status"], nothing["ticket"]) == ("nothing-changed", None)
    assert (again["ticket"], again["duplicate"]) == (first["ticket"], True)
    outside, inside = told(made.root, "stray")
    assert outside["ticket"] is None
    assert {"bench/bench.py", "knobs/gain.json"} <= set(outside["outside_scope"])
    assert inside["status"] == "queued"
    assert [answer["status"] for answer in told(made.root, "many")] == ["queued", "queued", "refused"]

    tickets = _intake(made)
    accepted = sorted(ticket.lane for ticket in tickets if ticket.state == "queued")
    assert accepted == ["gain", "loss", "many", "many", "same", "stray"]
    paths = {entry.path for ticket in tickets for entry in ticket.manifest.entries}
    assert paths == {f"knobs/{lane}.json" for lane in SCRIPT if lane != "forged"}
    assert {ticket.provenance for ticket in tickets} == {"stub"}
    with open_store(made.folder.database, read_only=True) as store:
        [forged] = store.tickets.rejected_submissions()
        assert (forged.lane, forged.cause) == ("forged", "hash-mismatch")
        assert [record.phase for record in store.attempts.all()] == ["settled"] * len(SCRIPT)


def _intake(made: AgentRound) -> list[TicketRecord]:
    with open_store(made.folder.database) as store:
        return take_in(intake_of(made.folder), store)
