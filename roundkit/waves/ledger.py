"""The campaign's files of lines: each line of a finished run is in them once, however often it was killed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from roundkit.core.clock import now_utc
from roundkit.core.files import sync_folder
from roundkit.evidence import wave_layout as names
from roundkit.models.base import Record
from roundkit.models.wave_records import DrafterState, LedgerRow
from roundkit.models.wave_traffic import WaveTraffic, WorkerStep
from roundkit.rules.wave_pick import counts
from roundkit.waves.folder import CampaignFolder, read_record
from roundkit.waves.run_folder import RunFolder


def append_once(path: Path, records: Sequence[Record]) -> None:
    """Add records as lines, but for those that are there; an unfinished last line is cut off first.

    The gater alone writes these files.

    Raises:
        OSError: it cannot be written; a part of a line is cut off by the next try.
    """
    there = path.read_bytes() if path.exists() else b""
    whole = there[: there.rfind(b"\n") + 1]
    known = set(whole.splitlines())
    lines = [line for record in records if (line := record.to_bytes()) not in known]
    if not lines and len(whole) == len(there):
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "wb") as stream:
        stream.truncate(len(whole))
        stream.seek(len(whole))
        stream.write(b"".join(line + b"\n" for line in lines))
        stream.flush()
        os.fsync(stream.fileno())
    sync_folder(path.parent)


def append_rejects(folder: RunFolder) -> None:
    """Add what a run did not bank to the campaign's file, each line once.

    Raises:
        OSError: it cannot be written.
    """
    rejects = folder.rejects
    append_once(folder.campaign.at(names.REJECTS), () if rejects is None else rejects.rows)


def restore_rows(campaign: CampaignFolder, ended: Iterable[RunFolder]) -> None:
    """Bring back the rows of ended runs that the ledger has lost: without it a wave would be gated again.

    Raises:
        OSError: it cannot be written.
    """
    known = campaign.ledger()
    for folder in ended:
        # Compared as records: a row that an older release wrote has other bytes.
        if folder.row not in known:
            append_rejects(folder)
            append_once(campaign.at(names.LEDGER), [folder.row])


def compose_row(folder: RunFolder) -> LedgerRow:
    """Return a run's row, from the records of its steps and what the drafter left of the wave.

    ``gate_s`` counts the steps that were finished, not the time of those that a killed gater began.

    Raises:
        Refused: ``malformed``, ``no-wave``: a record is missing or none.
    """
    campaign, run = folder.campaign, folder.run
    wave, drafted = campaign.read_wave(run.tag), campaign.drafted(run.tag)
    truncated = [None if end is None else end.truncated_turns for _, end in campaign.shards(run.tag)]
    step = read_record(campaign.wave(run.tag) / names.DECISION, WorkerStep)
    state = read_record(campaign.at(names.DRAFTER), DrafterState)
    now = now_utc()
    steps = (folder.owners, folder.prefilter, folder.pick, folder.gate, folder.commit, folder.harvest)
    return LedgerRow(
        format="roundkit-wave-row/1",
        plan_sha256=campaign.plan_sha256,
        tag=run.tag,
        mode=run.mode,
        provenance=campaign.plan.plan.draft.agent.provenance,
        began_utc=None if drafted is None else drafted.began_utc,
        gated_utc=now,
        wall_s=None if drafted is None else (now - drafted.began_utc).total_seconds(),
        gate_s=round(sum(each.took_s for each in steps), 3),
        workers=None if drafted is None else drafted.workers,
        band=wave.band,
        lever_set=wave.lever_set,
        targets=len(wave.targets) if run.mode == "wave" else len(folder.owners.targets),
        drafts=len(folder.owners.drafts) + len(folder.owners.refused),
        truncated_turns=_sum_known(truncated),
        unresolved=folder.owners.unresolved,
        prefilter=counts(folder.prefilter.results),
        gated=len(folder.pick.chosen),
        banked=len(folder.commit.banked),
        commit=folder.commit.commit,
        credit_usd=None if state is None else state.credit_usd,
        credit_reason="no drafter has told" if state is None else state.credit_reason,
        harvest=folder.harvest.state,
        traffic=read_record(campaign.wave(run.tag) / names.TRAFFIC, WaveTraffic),
        decision=None if step is None else step.decision,
    )


def _sum_known(counted: Sequence[int | None]) -> int | None:
    """Return a sum, null where a part of it is unknown."""
    known = [count for count in counted if count is not None]
    return sum(known) if known and len(known) == len(counted) else None
