"""The checks of a wave campaign's ledger: each row from the plan and the records of its wave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import get_args

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.wave_material import CampaignMaterial, WaveMaterial
from roundkit.audit.wave_time_checks import CLOCK
from roundkit.evidence import wave_layout as layout
from roundkit.models.wave_calls import PrefilterResult
from roundkit.models.wave_plan import WaveDraft
from roundkit.models.wave_records import LedgerRow

_STATUSES = frozenset(get_args(PrefilterResult.model_fields["status"].annotation))


def check_rows(material: CampaignMaterial) -> list[Check]:
    """Check every row of the ledger against its wave."""
    banked = sum(row.banked for row in material.rows)
    agreed = f"{len(material.rows)} rows, {banked} targets banked"
    return conclude("ledger", _row_problems(material), agreed)


def _row_problems(material: CampaignMaterial) -> Iterator[Disagreement]:
    waves = {each.tag: each for each in material.waves}
    for tag, count in Counter(row.tag for row in material.rows if row.mode == "wave").items():
        if count > 1:
            yield Disagreement(layout.LEDGER, f"wave {tag} has {count} rows of its own")
    for number, row in enumerate(material.rows, 1):
        where = f"{layout.LEDGER}: line {number}"
        each = waves.get(row.tag)
        if each is None:
            yield Disagreement(where, f"is of wave {row.tag}, which was never drawn")
        elif row.mode == "wave" and each.drafted is None:
            yield Disagreement(where, f"is of wave {row.tag}, which was never handed on")
        else:
            for name, follows in _of_the_wave(each, row).items():
                if getattr(row, name) != follows:
                    yield differs(where, name, getattr(row, name), follows)
            problems = (*_end_problems(row), *_plan_problems(material.plan.plan, row))
            yield from (Disagreement(where, problem) for problem in problems)
    yield from _gate_problems(material, waves)


def _of_the_wave(each: WaveMaterial, row: LedgerRow) -> dict[str, object]:
    """Return what a row has of its wave's own records."""
    known: dict[str, object] = {"band": each.wave.band, "lever_set": each.wave.lever_set}
    if row.mode == "wave":
        known["targets"] = len(each.wave.targets)
    # A row that was written before its wave's decision has none.
    if row.decision is not None:
        known["decision"] = each.step.decision if each.step is not None else None
    drafted = each.drafted
    if drafted is None or (row.mode != "wave" and row.gated_utc < drafted.handed_utc):
        # Gated alone before its drafter handed it on.
        return known | {"began_utc": None, "wall_s": None, "workers": None}
    known |= {
        "began_utc": drafted.began_utc,
        "wall_s": (row.gated_utc - drafted.began_utc).total_seconds(),
        "workers": drafted.workers,
        "traffic": each.traffic,
    }
    if each.is_whole:
        turns = [None if end is None else end.truncated_turns for _, end in each.shards.values()]
        told = [count for count in turns if count is not None]
        known["truncated_turns"] = sum(told) if told and len(told) == len(turns) else None
    if row.gated_utc < drafted.handed_utc:
        known["gated_utc"] = "not before its wave was handed on"
    return known


def _end_problems(row: LedgerRow) -> Iterator[str]:
    if (row.commit is None) != (row.banked == 0):
        yield "a commit without banked targets, or banked targets without a commit"
    if not row.banked <= row.gated <= row.drafts:
        yield f"{row.drafts} drafts, {row.gated} gated, {row.banked} banked"


def _plan_problems(plan: WaveDraft, row: LedgerRow) -> Iterator[str]:
    """Yield what a row of its mode cannot have, by the plan."""
    if row.mode == "parked" and (row.prefilter or not plan.gate.parked_groups):
        yield "is of parked drafts, and the plan parks none, or a prefilter was asked again"
    judged = sum(row.prefilter.values())
    if row.mode == "gate-only" and row.targets > judged:
        yield f"is of what came later, and has {row.targets} targets of {judged} drafts"
    if unknown := sorted(row.prefilter.keys() - _STATUSES):
        yield f"its prefilter says {', '.join(unknown)}, which no prefilter can"
    wanted = plan.harvest is not None and row.banked > 0
    if wanted != (row.harvest != "none"):
        yield f"its harvest is {row.harvest}, of {row.banked} banked targets"


def _gate_problems(material: CampaignMaterial, waves: Mapping[str, WaveMaterial]) -> Iterator[Disagreement]:
    """Yield gates longer than there was time for, one after the other, and commits that two rows name."""
    before = None
    commits: dict[str, int] = {}
    for number, row in sorted(enumerate(material.rows, 1), key=lambda each: each[1].gated_utc):
        where, each = f"{layout.LEDGER}: line {number}", waves.get(row.tag)
        if each is not None:
            drafted = each.drafted if row.mode == "wave" else None
            begun = each.wave.drawn_utc if drafted is None else drafted.handed_utc
            begun = begun if before is None else max(begun, before)
            room_s = (row.gated_utc - begun + CLOCK).total_seconds()
            if not 0.0 <= row.gate_s <= room_s:
                yield differs(where, "gate_s", row.gate_s, f"at least 0 and at most {room_s}")
        before = row.gated_utc
        if row.commit is not None and commits.setdefault(row.commit, number) != number:
            yield Disagreement(where, f"names the commit {row.commit} of line {commits[row.commit]}")
