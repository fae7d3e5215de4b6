"""The checks of a wave campaign's times: starts in order, tails and their grace, nothing after the export."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta
from math import ceil

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.wave_material import CampaignMaterial, WaveMaterial
from roundkit.evidence import wave_layout as layout

CLOCK = timedelta(seconds=1)
"""What the clock of dates may be set back by itself, or be off over a wave against the one that counts."""
_OF_ANOTHER_HOST = timedelta(minutes=1)
"""What the clock of the host of an export may be behind."""


def check_times(material: CampaignMaterial) -> list[Check]:
    """Check that waves were begun and handed on when their shards allowed it, and all before the export."""
    return conclude("times", _problems(material), "starts, ends and hand-overs in the order of the rules")


def tail_utc(material: CampaignMaterial, each: WaveMaterial) -> datetime | None:
    """Return when a wave came to its tail at the earliest; None where fewer shards than that have ended."""
    ends = sorted(end.ended_utc for _, end in each.shards.values() if end is not None)
    wanted = ceil(material.plan.plan.draft.tail * len(each.shards))
    return ends[wanted - 1] if 0 < wanted <= len(ends) else None


def _problems(material: CampaignMaterial) -> Iterator[Disagreement]:
    for before, each in itertools.pairwise([None, *material.waves]):
        if each is not None:
            yield from _start_problems(material, before, each)
            yield from _tail_problems(material, each)
            yield from _deadline_problems(material, each)
    yield from _export_problems(material)


def _start_problems(
    material: CampaignMaterial, before: WaveMaterial | None, each: WaveMaterial
) -> Iterator[Disagreement]:
    """Shards start in the order of their numbers, none before its wave's turn has come."""
    tail = None if before is None else tail_utc(material, before)
    turn = each.wave.drawn_utc if tail is None else max(tail, each.wave.drawn_utc)
    for number in sorted(each.shards):
        shard, _ = each.shards[number]
        if shard.started_utc < turn - CLOCK:
            where = f"{layout.shard_folder(each.tag, number)}/{layout.SHARD}"
            yield differs(where, "started_utc", shard.started_utc, f"not before {turn}")
        turn = max(turn, shard.started_utc)


def _tail_problems(material: CampaignMaterial, each: WaveMaterial) -> Iterator[Disagreement]:
    drafted = each.drafted
    if drafted is None:
        return
    tail = tail_utc(material, each)
    if tail is None:
        yield Disagreement(each.where, "was handed on before it came to its tail")
        return
    grace = timedelta(seconds=material.plan.plan.draft.grace_s) if drafted.running else timedelta()
    if drafted.handed_utc < tail + grace - CLOCK:
        where = f"{each.where}/{layout.DRAFTED}"
        yield differs(where, "handed_utc", drafted.handed_utc, f"not before {tail + grace}")


def _deadline_problems(material: CampaignMaterial, each: WaveMaterial) -> Iterator[Disagreement]:
    least = timedelta(seconds=material.plan.plan.draft.deadline_s) - CLOCK
    for number, (shard, end) in each.shards.items():
        if end is not None and end.end_reason == "deadline" and end.ended_utc - shard.started_utc < least:
            where = f"{layout.shard_folder(each.tag, number)}/{layout.END}"
            took = (end.ended_utc - shard.started_utc).total_seconds()
            yield differs(where, "seconds until its deadline", took, material.plan.plan.draft.deadline_s)


def _export_problems(material: CampaignMaterial) -> Iterator[Disagreement]:
    exported = material.evidence.index.exported_utc
    for where, moment in _moments(material):
        if moment > exported + _OF_ANOTHER_HOST:
            yield Disagreement(where, f"is of {moment}, and everything was exported at {exported}")


def _moments(material: CampaignMaterial) -> Iterator[tuple[str, datetime]]:
    """Yield when each record was written, with its place."""
    yield layout.PLAN, material.plan.frozen_utc
    if material.drafter is not None:
        yield layout.DRAFTER, material.drafter.at_utc
    for each in material.waves:
        yield f"{each.where}/{layout.WAVE}", each.wave.drawn_utc
        if each.drafted is not None:
            yield f"{each.where}/{layout.DRAFTED}", each.drafted.handed_utc
        for number, (shard, end) in each.shards.items():
            place = layout.shard_folder(each.tag, number)
            yield f"{place}/{layout.SHARD}", shard.started_utc
            if end is not None:
                yield f"{place}/{layout.END}", end.ended_utc
    for number, row in enumerate(material.rows, 1):
        yield f"{layout.LEDGER}: line {number}", row.gated_utc
    for number, reject in enumerate(material.rejects, 1):
        yield f"{layout.REJECTS}: line {number}", reject.at_utc
