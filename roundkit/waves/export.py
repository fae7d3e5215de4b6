"""A campaign's records without its drafts, staging and logs: its evidence, bound by an index of digests."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import roundkit
from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import now_utc
from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write, whole_folder
from roundkit.core.progress import SILENT, Progress
from roundkit.evidence import wave_layout as names
from roundkit.models.evidence import IndexedFile, WaveIndex
from roundkit.waves.folder import CampaignFolder

_BEFORE = (names.PLAN, names.LEDGER)
_AFTER = (names.REJECTS, names.EVENTS, names.DRAFTER)
"""Read last: what goes on meanwhile has written to them what the other records tell of."""
_OF_A_WAVE = (names.WAVE, names.DRAFTED, names.TRAFFIC, names.DECISION)
_OF_A_SHARD = (names.SHARD, names.END)
_LINES = ".jsonl"


def export_campaign(
    campaign: CampaignFolder, out: Path, *, now: datetime | None = None, progress: Progress = SILENT
) -> int:
    """Copy a campaign's records into a new folder, byte for byte, and return how many files there are.

    Args:
        campaign: The campaign; it may run. Of a line that is half-written there, nothing is taken.
        out: The folder to make.
        now: The time of the export; the clock's unless given.
        progress: Shows how many files are copied.

    Raises:
        Refused: ``exists``.
        OSError: something cannot be read or written; nothing of the copy is there then.
    """
    if out.exists():
        raise refuse("exists", f"{out} exists", place=str(out), remedy="name a folder that does not")
    copied = []
    with whole_folder(out) as partial, progress.task(f"export to {out.name}", None, "files") as task:
        for path in _records(campaign):
            source = campaign.at(path)
            if source.is_file():
                data = source.read_bytes()
                if path.endswith(_LINES):
                    data = data[: data.rfind(b"\n") + 1]
                target = partial / path
                target.parent.mkdir(parents=True, exist_ok=True)
                atomic_write(target, data)
                copied.append(IndexedFile(path=path, size=len(data), sha256=digest_bytes(data)))
                task.advance()
        index = WaveIndex(
            format="roundkit-waves-evidence/1",
            campaign_id=campaign.plan.plan.campaign_id,
            exported_utc=now or now_utc(),
            tool_version=roundkit.__version__,
            files=tuple(sorted(copied, key=lambda file: file.path)),
        ).to_bytes()
        atomic_write(partial / names.INDEX, index)
        atomic_write(partial / names.SEAL, names.seal_bytes(digest_bytes(index)))
    return len(copied)


def _records(campaign: CampaignFolder) -> Iterator[str]:
    yield from _BEFORE
    for tag in campaign.tags():
        yield from (f"{names.wave_folder(tag)}/{name}" for name in _OF_A_WAVE)
        for shard, _ in campaign.shards(tag):
            place = names.shard_folder(tag, shard.index)
            yield from (f"{place}/{name}" for name in _OF_A_SHARD)
    yield from _AFTER
