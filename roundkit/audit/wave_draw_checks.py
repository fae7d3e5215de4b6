"""The checks of a wave campaign's draws: what each wave has, what it left out, and when it was drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import get_args

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.wave_material import CampaignMaterial, WaveMaterial
from roundkit.audit.wave_time_checks import CLOCK
from roundkit.evidence import wave_layout as layout
from roundkit.models.wave_plan import WaveDraft
from roundkit.models.wave_records import Key
from roundkit.rules.wave_draw import LeftOut, answer_problem

_BESIDE_COMMANDS = timedelta(minutes=10)
"""What a draw may take beside the time that its commands have."""


def check_draws(material: CampaignMaterial) -> list[Check]:
    """Check every wave's targets against the plan's limits, and what was drawn before."""
    drawn = sum(len(each.wave.targets) for each in material.waves)
    return conclude("draws", _draw_problems(material), f"{drawn} targets in {len(material.waves)} waves")


def _draw_problems(material: CampaignMaterial) -> Iterator[Disagreement]:
    plan = material.plan.plan
    before: set[Key] = set()
    last: WaveMaterial | None = None
    tags = [each.tag for each in material.waves]
    if tags != [f"{number:04d}" for number in range(1, len(tags) + 1)]:
        yield Disagreement(layout.WAVES, f"waves are not numbered from 0001 without a gap: {', '.join(tags)}")
    if plan.waves is not None and len(tags) > plan.waves:
        yield differs(layout.WAVES, "waves", len(tags), f"at most {plan.waves}")
    for each in material.waves:
        wave, where = each.wave, f"{each.where}/{layout.WAVE}"
        yield from _limit_problems(material, each, where)
        keys = {target.key for target in wave.targets}
        if wave.retried != len(keys & before):
            yield differs(where, "retried", wave.retried, len(keys & before))
        yield from (Disagreement(where, problem) for problem in _left_out_problems(plan, each, before))
        yield from _moment_problems(material, each, last)
        before |= keys
        last = each
        if wave.drawn_utc < material.plan.frozen_utc:
            yield Disagreement(where, "was drawn before the plan was frozen")


def _limit_problems(material: CampaignMaterial, each: WaveMaterial, where: str) -> Iterator[Disagreement]:
    plan, targets = material.plan.plan, each.wave.targets
    band = next((one for one in plan.bands if one.id == each.wave.band), None)
    if band is None or each.wave.lever_set not in {one.id for one in plan.lever_sets}:
        yield Disagreement(where, "is of a band or lever set that the plan does not have")
    elif not all(band.holds(target.size) for target in targets):
        yield Disagreement(where, f"has a target that is not of band {band.id}")
    if problem := answer_problem(targets):
        yield Disagreement(where, problem)
    groups = {target.group for target in targets}
    if excluded := sorted(groups & set(plan.excluded_groups)):
        yield Disagreement(where, f"has targets of excluded groups: {', '.join(excluded)}")
    for what, count, most in (
        ("targets", len(targets), plan.targets),
        ("groups", len(groups), plan.most_groups),
    ):
        if count > most:
            yield differs(where, what, count, f"at most {most}")
    families = Counter(target.family for target in targets if target.family is not None)
    if plan.one_per_family and (twice := [name for name, count in families.items() if count > 1]):
        yield Disagreement(where, f"has several of one family: {', '.join(twice)}")


def _left_out_problems(plan: WaveDraft, each: WaveMaterial, before: AbstractSet[Key]) -> Iterator[str]:
    """Yield reasons for which nothing can have been left out, and counts above what there was."""
    targets, left = each.wave.targets, each.wave.left_out
    band = next((one for one in plan.bands if one.id == each.wave.band), None)
    holds_all = band is not None and not band.at_least and band.under is None
    groups = {target.group for target in targets}
    for reason, can_be in (
        ("wave-full", len(targets) >= plan.targets),
        ("group-limit", len(groups) >= plan.most_groups),
        ("sibling", plan.one_per_family),
        ("excluded-group", bool(plan.excluded_groups)),
        ("other-band", not holds_all),
    ):
        if left.get(reason) and not can_be:
            yield f"left {left[reason]} out for {reason}, which cannot be by the plan and its targets"
    if unknown := sorted(left.keys() - set(get_args(LeftOut))):
        yield f"left targets out for what is no reason: {', '.join(unknown)}"
    open_ = left.get("drafting", 0) + left.get("gating", 0)
    if open_ > len(before):
        yield f"left {open_} out as of open waves, and the waves before it have {len(before)} targets"


def _moment_problems(
    material: CampaignMaterial, each: WaveMaterial, last: WaveMaterial | None
) -> Iterator[Disagreement]:
    """Yield a wave that was drawn too early or too late: the one before it was all started by then."""
    plan, drawn_utc = material.plan.plan, each.wave.drawn_utc
    where = f"{each.where}/{layout.WAVE}"
    if plan.deadline_utc is not None and drawn_utc - _draw_time(plan) > plan.deadline_utc:
        yield differs(where, "drawn_utc", drawn_utc, f"before the deadline {plan.deadline_utc}")
    if last is None:
        return
    begun = max([last.wave.drawn_utc, *(shard.started_utc for shard, _ in last.shards.values())])
    if drawn_utc < begun - CLOCK:
        yield differs(where, "drawn_utc", drawn_utc, f"after the last start of wave {last.tag}, {begun}")
    waiting = [
        one.tag
        for one in material.waves
        if one.drafted is not None
        and one.drafted.handed_utc < begun - CLOCK
        and any(row.mode == "wave" and row.gated_utc > drawn_utc + CLOCK for row in material.rows_of(one.tag))
    ]
    if len(waiting) >= plan.queue_depth:
        said = f"was drawn while {', '.join(waiting)} waited for the gate, and the plan lets"
        yield Disagreement(where, f"{said} {plan.queue_depth - 1} wait")


def _draw_time(plan: WaveDraft) -> timedelta:
    """Return what a draw takes at most: every pair of band and lever set is asked for, and the credit."""
    commands = plan.draw.timeout_s * len(plan.bands) * len(plan.lever_sets)
    commands += plan.credit.timeout_s if plan.credit is not None else 0
    return timedelta(seconds=commands) + _BESIDE_COMMANDS
