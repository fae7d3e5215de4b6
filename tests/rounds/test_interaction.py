"""Two lanes that reinforce one another, and one whose file gives way to a folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from support.synthetic import campaign_repo, knob, scripted_lane

from roundkit.core.clock import now_utc
from roundkit.core.git import Repository
from roundkit.models.lane import Manifest, ManifestEntry
from roundkit.models.ledger import TicketRecord
from roundkit.rounds.candidate import CannotLay, lay_candidate
from roundkit.rounds.close import close
from roundkit.rounds.intake import keep_blob
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.serve import serve
from roundkit.store import open_store


@pytest.mark.usefixtures("lease_root")
@pytest.mark.slow
def test_r06_two_lanes_that_reinforce_have_a_ratio_over_one(open_folder: Path) -> None:
    repo = campaign_repo(open_folder, ("L1", "L2"), reinforcing=[("L1", "L2", 0.5)])
    repo.edit_round(lambda draft: draft["composition"].update(fresh_standalone=True))
    folder, _ = repo.launched(open_folder / "round")
    for lane in ("L1", "L2"):
        scripted_lane(folder.clone(lane), {f"knobs/{lane}.json": knob(0.4)})
    serve(folder, until="idle", report=lambda _line: None)
    ledger = close(folder, report=lambda _line: None).ledger
    ratio = ledger.composition[1].ratio
    assert [step.ratio.basis for step in ledger.composition] == ["by-construction", "fresh"]
    with open_store(folder.database, read_only=True) as store:
        alone = [one.subject for one in store.experiments.records() if one.purpose == "standalone"]
    assert sorted(alone) == ["alone-L1", "alone-L2"]
    assert ledger.advanced
    assert ratio.value is not None
    assert ratio.low is not None
    assert ratio.low > 1.1


def ticket_of(folder: RoundFolder, changes: dict[str, bytes | None]) -> TicketRecord:
    entries = []
    for path, content in changes.items():
        digest = None if content is None else hashlib.sha256(content).hexdigest()
        if content is not None and digest is not None:
            keep_blob(folder.blobs, digest, content)
        mode = None if content is None else "100644"
        entries.append(ManifestEntry(path=path, mode=mode, deleted=content is None, sha256=digest))
    manifest = Manifest(format="roundkit-manifest/1", lane="L1", entries=tuple(entries))
    return TicketRecord(
        ticket="r01-L1-00000000", key="0" * 64, lane="L1", sequence=1, manifest=manifest,
        manifest_digest=manifest.content_digest(), intake_utc=now_utc(), state="queued", reject_cause=None,
        reject_detail=None, candidate_commit=None, candidate_tree=None, commands=(), experiments=(),
        verdict=None, measured_utc=None, provenance="person",
    )  # fmt: skip


def test_a_file_may_become_a_folder_but_not_both(launched: RoundFolder) -> None:
    plan = read_plan(launched)
    both = ticket_of(launched, {"knobs/L1.json/new": b"{}"})
    with pytest.raises(CannotLay, match=r"'knobs/L1\.json' would be a file and a folder"):
        lay_candidate(launched, plan, both, plan.incumbent)
    instead = ticket_of(launched, {"knobs/L1.json": None, "knobs/L1.json/new": b"{}"})
    laid = lay_candidate(launched, plan, instead, plan.incumbent)
    assert "knobs/L1.json/new" in Repository(launched.repository).paths(laid.commit)
    assert laid == lay_candidate(launched, plan, instead, plan.incumbent)
