"""The checks of a wave campaign's ledger: each row from the records of its wave, and what did not bank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.wave_material import CampaignMaterial, WaveMaterial
from roundkit.evidence import wave_layout as layout
from roundkit.models.wave_records import LedgerRow, Rejected


def check_rows(material: CampaignMaterial) -> list[Check]:
    """Check every row of the ledger against its wave."""
    banked = sum(row.banked for row in material.rows)
    agreed = f"{len(material.rows)} rows, {banked} targets banked"
    return conclude("ledger", _row_problems(material), agreed)


def check_rejects(material: CampaignMaterial) -> list[Check]:
    """Check that every draft either banked or stands among the rejects with its reason."""
    found = _reject_problems(material)
    return conclude(
        "rejects", found, f"{len(material.rejects)} drafts that did not bank, each with its reason"
    )


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
            yield from (Disagreement(where, problem) for problem in _end_problems(row))


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
    if (row.credit_usd is None) != (row.credit_reason is not None):
        yield "credit and the reason why nobody knows it do not go together"


def _reject_problems(material: CampaignMaterial) -> Iterator[Disagreement]:
    waves = {each.tag: each for each in material.waves}
    parked = {row.tag for row in material.rows if row.mode == "parked"}
    for number, reject in enumerate(material.rejects, 1):
        where = f"{layout.REJECTS}: line {number}"
        each = waves.get(reject.tag)
        if each is None or not material.rows_of(reject.tag):
            yield Disagreement(where, f"is of wave {reject.tag}, which was not drawn or has no row")
            continue
        if (reject.group is None) != (reject.name is None):
            yield Disagreement(where, "has a group without a name, or a name without a group")
        if reject.at_utc < each.wave.drawn_utc:
            yield Disagreement(where, "is from before its wave was drawn")
        # What was parked is gated together, whatever wave it comes from.
        if reject.tag not in parked:
            yield from (Disagreement(where, problem) for problem in _origin_problems(each, reject))
    for each in material.waves:
        own = [reject for reject in material.rejects if reject.tag == each.tag]
        yield from _count_problems(each.tag, material.rows_of(each.tag), own)


def _origin_problems(each: WaveMaterial, reject: Rejected) -> Iterator[str]:
    targets = {target.key for target in each.wave.targets}
    if reject.group is not None and (reject.group, reject.name) not in targets:
        yield f"is of {reject.group}/{reject.name}, which wave {each.tag} does not have"
    if not any(reject.path.startswith(f"{layout.SHARDS}/{number:04d}/") for number in each.shards):
        yield f"is a draft {reject.path} of no shard that was started"


def _count_problems(
    tag: str, rows: Sequence[LedgerRow], rejects: Sequence[Rejected]
) -> Iterator[Disagreement]:
    """Hold the sums of a wave's rows against its rejects: each draft is in exactly one place."""
    if not rows or any(row.mode == "parked" for row in rows):
        return  # what was parked comes before a gate twice
    where = f"wave {tag}"
    stages = Counter(reject.stage for reject in rejects)
    judged = Counter[str]()
    for row in rows:
        judged.update(row.prefilter)
    drafts, gated, banked = (
        sum(getattr(row, name) for row in rows) for name in ("drafts", "gated", "banked")
    )
    left = stages["score"] + stages["parked"] + stages["gate"]
    for what, stands, follows in (
        ("drafts", drafts, judged.total() + stages["owner"]),
        (
            "drafts that the prefilter did not agree with",
            judged.total() - judged["agree"],
            stages["prefilter"],
        ),
        ("banked", banked, judged["agree"] - left),
    ):
        if stands != follows:
            yield differs(where, what, stands, follows)
    unowned = sum(reject.stage == "owner" and reject.group is None for reject in rejects)
    unresolved = sum(row.unresolved for row in rows)
    if unresolved != unowned:
        yield differs(where, "unresolved", unresolved, unowned)
    if not banked <= gated <= judged["agree"]:
        yield Disagreement(where, f"{judged['agree']} passed the prefilter, {gated} gated, {banked} banked")
