"""The checks of a wave campaign's rejects: whose drafts they are, when and why they did not bank."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.wave_material import CampaignMaterial, WaveMaterial
from roundkit.audit.wave_time_checks import CLOCK
from roundkit.evidence import wave_layout as layout
from roundkit.models.wave_plan import WaveDraft
from roundkit.models.wave_records import Key, LedgerRow, Rejected
from roundkit.rules.wave_owners import Unowned, owner_of
from roundkit.rules.wave_pick import path_taken

_NEVER = datetime.max.replace(tzinfo=UTC) - CLOCK
_DRAFT = re.compile(f"{layout.SHARDS}/([0-9]{{4,}})/{layout.DRAFTS}/(.*)", re.DOTALL)


def check_rejects(material: CampaignMaterial) -> list[Check]:
    """Check that every draft either banked or stands among the rejects with its reason."""
    found = _reject_problems(material)
    return conclude(
        "rejects", found, f"{len(material.rejects)} drafts that did not bank, each with its reason"
    )


def _reject_problems(material: CampaignMaterial) -> Iterator[Disagreement]:
    waves = {each.tag: each for each in material.waves}
    parked = {row.tag for row in material.rows if row.mode == "parked"}
    written = _moments_of(material)
    for number, reject in enumerate(material.rejects, 1):
        where = f"{layout.REJECTS}: line {number}"
        each = waves.get(reject.tag)
        if each is None or not material.rows_of(reject.tag):
            yield Disagreement(where, f"is of wave {reject.tag}, which was not drawn or has no row")
            continue
        if (reject.group is None) != (reject.name is None):
            yield Disagreement(where, "has a group without a name, or a name without a group")
        earliest, latest = written[reject.tag, reject.stage == "gate"]
        if not earliest - CLOCK <= reject.at_utc <= latest + CLOCK:
            yield differs(where, "at_utc", reject.at_utc, f"from {earliest} to {latest}")
        # What was parked is gated together, whatever wave it comes from.
        if reject.tag not in parked:
            problems = _origin_problems(material.plan.plan, each, reject)
            yield from (Disagreement(where, problem) for problem in problems)
    for each in material.waves:
        own = [reject for reject in material.rejects if reject.tag == each.tag]
        yield from _count_problems(each.tag, material.rows_of(each.tag), own)


def _moments_of(material: CampaignMaterial) -> dict[tuple[str, bool], tuple[datetime, datetime]]:
    """Return from when to when a wave's rejects may be, of the gate's own stage and of those before it.

    Those of the gate are written down after its row, and before the next run begins.
    """
    ordered = sorted(row.gated_utc for row in material.rows)
    found = {}
    for each in material.waves:
        rows = material.rows_of(each.tag)
        if not rows:
            continue
        handed = each.drafted is not None and all(row.mode == "wave" for row in rows)
        earliest = each.drafted.handed_utc if handed and each.drafted else each.wave.drawn_utc
        last = max(row.gated_utc for row in rows)
        following = (moment for moment in ordered if moment > last)
        found[each.tag, False] = (earliest, last)
        found[each.tag, True] = (earliest, next(following, _NEVER))
    return found


def _origin_problems(plan: WaveDraft, each: WaveMaterial, reject: Rejected) -> Iterator[str]:
    targets = {target.key for target in each.wave.targets}
    key = None if reject.group is None or reject.name is None else (reject.group, reject.name)
    if key is not None and key not in targets:
        yield f"is of {reject.group}/{reject.name}, which wave {each.tag} does not have"
    place = _DRAFT.fullmatch(reject.path)
    if place is None or int(place[1]) not in each.shards:
        yield f"is a draft {reject.path} of no shard that was started"
        return
    owner = _owner(plan, each, reject.path)
    if key is not None and owner != key:
        yield f"is a draft {reject.path}, which is not one of {reject.group}/{reject.name}"
    if key is None and owner is not None and reject.sha256 is not None:
        yield f"has no owner, and {reject.path} is a draft of {'/'.join(owner)}"
    if key is not None and reject.sha256 is None:
        yield "is a draft without a digest, and its owner is known"
    if key is None and reject.stage != "owner":
        yield f"has no owner, and came to the stage {reject.stage}"
    if reject.stage == "parked" and reject.group not in plan.gate.parked_groups:
        yield f"was parked, and the plan does not park {reject.group}"
    if reject.stage == "score":
        taken = path_taken(reject.reason)
        if taken is None or taken == reject.path or _owner(plan, each, taken) != key:
            yield f"was left by the scorer, and no other draft of its target is named: {reject.reason}"


def _owner(plan: WaveDraft, each: WaveMaterial, path: str) -> Key | None:
    """Return whose draft a path is; null where it belongs to no one target."""
    place = _DRAFT.fullmatch(path)
    if place is None or int(place[1]) not in each.shards:
        return None
    shard, _ = each.shards[int(place[1])]
    owner = owner_of(place[2], plan.draft.suffix, shard.targets)
    return None if isinstance(owner, Unowned) else owner


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
    told = Counter(reject.reason.partition(":")[0] for reject in rejects if reject.stage == "prefilter")
    if told != (others := Counter({name: count for name, count in judged.items() if name != "agree"})):
        yield differs(where, "reasons of the prefilter", dict(told), dict(others))
    passed = judged["agree"] - stages["score"] - stages["parked"]
    if not banked <= gated <= passed:
        yield Disagreement(where, f"{passed} could be gated, {gated} gated, {banked} banked")
