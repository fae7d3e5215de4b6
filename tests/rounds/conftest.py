"""A launched round, and what tests do to it by hand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.synthetic import CampaignRepo

from roundkit.models.lane import Manifest
from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.intake import Intake, take_in
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rules.identity import ticket_key
from roundkit.store import open_store

Entry = Mapping[str, Any]


@pytest.fixture
def launched(three_lanes: CampaignRepo, open_folder: Path, lease_root: Path) -> RoundFolder:
    """The three lanes, launched."""
    folder, _ = three_lanes.launched(open_folder / "round")
    return folder


def force_entry(
    folder: RoundFolder,
    lane: str,
    entries: list[Entry],
    *,
    blobs: Mapping[str, bytes] | None = None,
    name: str | None = None,
    raw: bytes | None = None,
) -> str:
    """Write an outbox entry that says whatever a hostile lane wants; return its name."""
    document = {"format": "roundkit-manifest/1", "lane": lane, "entries": entries}
    data = raw if raw is not None else json.dumps(document).encode("utf-8", "surrogatepass")
    key = name or _key(folder, lane, document)
    target = folder.outbox(lane) / key
    (target / "blobs").mkdir(parents=True)
    (target / "manifest.json").write_bytes(data)
    for digest, content in (blobs or {}).items():
        (target / "blobs" / digest).write_bytes(content)
    return key


def _key(folder: RoundFolder, lane: str, document: dict[str, Any]) -> str:
    """Return the right key where the manifest can be read at all, else some name."""
    digest = read_plan(folder).digest()
    try:
        manifest = Manifest.model_validate_json(json.dumps(document), strict=True)
        return ticket_key(digest, lane, manifest.content_digest())
    except ValueError:
        return hashlib.sha256(repr(document).encode("utf-8", "backslashreplace")).hexdigest()


def written(path: str, content: bytes, mode: str = "100644") -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return a manifest entry for a file, and its blob."""
    digest = hashlib.sha256(content).hexdigest()
    return {"path": path, "mode": mode, "deleted": False, "sha256": digest}, {digest: content}


def intake_of(folder: RoundFolder) -> Intake:
    plan: RoundPlan = read_plan(folder)
    return Intake(folder, plan, plan.digest())


def causes(folder: RoundFolder) -> list[str]:
    """Take in what lies in the outboxes and return the causes of rejection, tickets first."""
    with open_store(folder.database) as store:
        take_in(intake_of(folder), store)
        tickets = [ticket.reject_cause or ticket.state for ticket in store.tickets.all()]
        return tickets + [rejected.cause for rejected in store.tickets.rejected_submissions()]
