"""A campaign's records without its drafts, staging and logs: what frames, charts and reports are made of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write
from roundkit.evidence import wave_layout as names
from roundkit.waves.folder import CampaignFolder

_OF_A_CAMPAIGN = (names.PLAN, names.LEDGER, names.REJECTS, names.EVENTS, names.DRAFTER)
_OF_A_WAVE = (names.WAVE, names.DRAFTED, names.TRAFFIC, names.DECISION)
_OF_A_SHARD = (names.SHARD, names.END)


def export_campaign(campaign: CampaignFolder, out: Path) -> int:
    """Copy a campaign's records into a new folder, byte for byte, and return how many files there are.

    Args:
        campaign: The campaign; it may run.
        out: The folder to make.

    Raises:
        Refused: ``exists``.
        OSError: something cannot be read or written.
    """
    if out.exists():
        raise refuse("exists", f"{out} exists", place=str(out), remedy="name a folder that does not")
    copied = 0
    for path in _records(campaign):
        source = campaign.at(path)
        if source.is_file():
            target = out / path
            target.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(target, source.read_bytes())
            copied += 1
    return copied


def _records(campaign: CampaignFolder) -> Iterator[str]:
    yield from _OF_A_CAMPAIGN
    for tag in campaign.tags():
        yield from (f"{names.wave_folder(tag)}/{name}" for name in _OF_A_WAVE)
        for shard, _ in campaign.shards(tag):
            place = names.shard_folder(tag, shard.index)
            yield from (f"{place}/{name}" for name in _OF_A_SHARD)
