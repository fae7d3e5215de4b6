"""Drafts of groups that are gated apart: put aside by a wave's run, taken up by a batch of their own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from roundkit.core.canonical import digest_json
from roundkit.core.clock import now_utc
from roundkit.core.files import atomic_write
from roundkit.evidence import wave_layout as names
from roundkit.models.wave_gate import ParkedDraft
from roundkit.models.wave_records import Draft, Target
from roundkit.rules.wave_steps import Identity
from roundkit.waves.folder import CampaignFolder, read_record
from roundkit.waves.staging import DraftStore

_RECORDS = "records"
_BYTES = "drafts"


def park(
    campaign: CampaignFolder, tag: str, drafts: Iterable[tuple[Target, Draft]], store: DraftStore
) -> None:
    """Put drafts aside; one that lies there already is left as it is.

    Raises:
        OSError: something cannot be written.
    """
    records = _folder(campaign) / _RECORDS
    kept = parked_store(campaign)
    records.mkdir(parents=True, exist_ok=True)
    for target, draft in drafts:
        place = records / _name((draft.group, draft.name, draft.sha256))
        if place.exists():
            continue
        kept.put(store.get(draft.sha256))
        atomic_write(place, ParkedDraft(tag=tag, parked_utc=now_utc(), target=target, draft=draft).to_bytes())


def parked(campaign: CampaignFolder) -> list[ParkedDraft]:
    """Return what lies aside, by wave and then as drafts are ordered.

    Raises:
        Refused: ``malformed``: a record is none.
    """
    records = _folder(campaign) / _RECORDS
    if not records.is_dir():
        return []
    found = [read_record(path, ParkedDraft) for path in sorted(records.glob("*.json"))]
    known = [record for record in found if record is not None]
    return sorted(known, key=lambda one: (int(one.tag), one.draft.attempt, one.draft.shard, one.draft.path))


def take_up(campaign: CampaignFolder, decided: Iterable[Identity]) -> None:
    """Remove drafts that nothing is left to do about."""
    for identity in decided:
        (_folder(campaign) / _RECORDS / _name(identity)).unlink(missing_ok=True)


def parked_store(campaign: CampaignFolder) -> DraftStore:
    """Return where their bytes lie."""
    return DraftStore(_folder(campaign) / _BYTES)


def _folder(campaign: CampaignFolder) -> Path:
    return campaign.at(names.PARKED)


def _name(identity: Identity) -> str:
    return f"{digest_json(list(identity))}.json"
