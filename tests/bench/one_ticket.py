"""A round with one real ticket, whose record stands in for those of a benchmark's many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.synthetic import CampaignRepo, knob, scripted_lane

from roundkit.core.canonical import digest_bytes
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.lane import Manifest
from roundkit.models.measurement import Purpose
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.serve import serve
from roundkit.store import open_store


def serve_one_ticket(
    home: Path, repo: CampaignRepo, *, aa_interval: int
) -> tuple[RoundFolder, dict[Purpose, ExperimentRecord]]:
    """Serve one real ticket of L1, after a real A/A check, and return both experiments by their purpose."""

    def edit(draft: Any) -> None:
        draft["aa_interval"] = aa_interval
        for lane in draft["lanes"]:
            lane["submission_cap"] = 1_000_000

    repo.edit_round(edit)
    folder, _ = repo.launched(home / "round")
    scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.5)})
    serve(folder, until="idle", report=lambda _: None)
    with open_store(folder.database, read_only=True) as store:
        return folder, {one.purpose: one for one in store.experiments.records()}


def manifest_of(lane: str, content: bytes) -> Manifest:
    """Return the manifest of a submission that changes the lane's knob."""
    row = {
        "path": f"knobs/{lane}.json", "mode": "100644", "deleted": False, "sha256": digest_bytes(content),
    }  # fmt: skip
    return Manifest.model_validate({"format": "roundkit-manifest/1", "lane": lane, "entries": (row,)})


def renamed(record: ExperimentRecord, name: str, subject: str, lane: str | None) -> ExperimentRecord:
    """Return a record as that of another experiment."""
    return record.model_copy(update={"experiment_id": name, "subject": subject, "lane": lane})
