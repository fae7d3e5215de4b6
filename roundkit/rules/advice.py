"""Which directions go well together in one round. Advice on a plan, and the same rules for drafting one.

None of it refuses: an owner may know better. What is known comes from the campaign's own numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from roundkit.models.campaign import CampaignPlan
from roundkit.models.round_plan import RoundPlan
from roundkit.models.search_plan import SearchPlanEntry
from roundkit.rules.authority import authority_refusal
from roundkit.rules.scope import overlaps

_SHOWN_PATHS = 3

Topic = Literal["same-stage", "no-result", "scope", "authority", "incumbent"]


@dataclass(frozen=True)
class Advice:
    """One piece of advice.

    Attributes:
        topic: What it is about.
        lanes: The lanes that it is about; empty when it is about all of them.
        found: What the plan's numbers say.
        suggestion: What to consider.
    """

    topic: Topic
    lanes: tuple[str, ...]
    found: str
    suggestion: str


@dataclass(frozen=True)
class LeftOut:
    """A planned entry that is not proposed, and why."""

    entry: str
    why: str


@dataclass(frozen=True)
class Proposal:
    """Which entries one round should pursue, most headroom first, and which it should not."""

    entries: tuple[SearchPlanEntry, ...]
    left_out: tuple[LeftOut, ...]


def advise(plan: RoundPlan) -> tuple[Advice, ...]:
    """Return what speaks against the lanes of a plan, as far as the campaign's numbers tell."""
    entries = {entry.id: entry for entry in plan.campaign.search_plan}
    lanes = [(lane.id, entries[lane.entry], lane.globs) for lane in plan.lanes if lane.entry in entries]
    return (
        *_same_stage([(lane, entry) for lane, entry, _ in lanes]),
        *_no_result(plan.campaign, [(lane, entry) for lane, entry, _ in lanes]),
        *_other_scope(lanes),
        *_blocked(plan),
    )


def _blocked(plan: RoundPlan) -> Iterator[Advice]:
    """Say which lanes' agents will be refused for want of authority."""
    for lane in plan.lanes:
        refusal = authority_refusal(plan, lane, (), plan.frozen_utc, more=True)
        if refusal is not None:
            yield Advice("authority", (lane.id,), refusal.message, f"{refusal.place}: {refusal.remedy}")


def propose_entries(campaign: CampaignPlan, most: int, paths: Collection[str]) -> Proposal:
    """Choose entries whose gains should add up: one a stage, each able to show a result, none overlapping.

    Entries with more headroom come first; the order of the search plan breaks ties. Where no more split
    cleanly, there are fewer.

    Args:
        campaign: The campaign.
        most: How many lanes are wanted; the campaign's own limit holds too.
        paths: Files of the incumbent, on which proposed scopes are compared.
    """
    room = min(most, campaign.budget.lanes_per_round)
    planned = [entry for entry in campaign.search_plan if entry.status == "planned"]
    chosen: list[SearchPlanEntry] = []
    left_out: list[LeftOut] = []
    for entry in sorted(planned, key=lambda entry: -entry.conditional_headroom):
        why = _against(entry, campaign, chosen, paths)
        if why is None and len(chosen) >= room:
            lanes = "1 lane" if room == 1 else f"{room} lanes"
            why = f"there is room for {lanes}, and the headroom of others is no smaller"
        if why is None:
            chosen.append(entry)
        else:
            left_out.append(LeftOut(entry.id, why))
    return Proposal(tuple(chosen), tuple(left_out))


def _against(
    entry: SearchPlanEntry, campaign: CampaignPlan, chosen: Sequence[SearchPlanEntry], paths: Collection[str]
) -> str | None:
    planes = (entry.plane,) if isinstance(entry.plane, str) else entry.plane
    if len(planes) != 1:
        return f"it names {len(planes)} planes, and a lane changes one kind of thing"
    least = _least_headroom(campaign)
    if least is not None and entry.conditional_headroom < least:
        under = _under_noise(campaign, least)
        return f"its headroom of {_percent(entry.conditional_headroom)} is {under}"
    for other in chosen:
        if _stage(other) == _stage(entry):
            return f"it attacks the same stage as {other.id}, whose headroom is no smaller"
    for other in chosen:
        for overlap in overlaps([(other.id, other.scope), (entry.id, entry.scope)], paths):
            return f"its scope and that of {other.id} both match {_some(overlap.paths)}"
    return None


def _same_stage(lanes: Sequence[tuple[str, SearchPlanEntry]]) -> Iterator[Advice]:
    stages: dict[str, list[tuple[str, SearchPlanEntry]]] = {}
    for lane, entry in lanes:
        stages.setdefault(_stage(entry), []).append((lane, entry))
    for together in stages.values():
        if len(together) < 2:
            continue
        best, _ = max(together, key=lambda row: row[1].conditional_headroom)
        headrooms = ", ".join(f"{lane} {_percent(entry.conditional_headroom)}" for lane, entry in together)
        yield Advice(
            "same-stage",
            tuple(lane for lane, _ in together),
            f"they attack one stage, {together[0][1].target_stage!r}; headroom: {headrooms}",
            f"such gains rarely add up: keep {best}, and measure the rest against the incumbent that follows",
        )


def _no_result(campaign: CampaignPlan, lanes: Sequence[tuple[str, SearchPlanEntry]]) -> Iterator[Advice]:
    least = _least_headroom(campaign)
    if least is None:
        yield Advice(
            "no-result",
            (),
            "test_plan.noise is not known, so nobody can tell which lanes could show a result",
            "run `roundkit noise` and paste its block there",
        )
        return
    for lane, entry in lanes:
        if entry.conditional_headroom < least:
            yield Advice(
                "no-result",
                (lane,),
                f"a headroom of {_percent(entry.conditional_headroom)} is {_under_noise(campaign, least)}",
                "it could not show a result: leave it out; fewer lanes are better than blind ones",
            )


def _other_scope(lanes: Sequence[tuple[str, SearchPlanEntry, tuple[str, ...]]]) -> Iterator[Advice]:
    for lane, entry, globs in lanes:
        further = [glob for glob in globs if glob not in entry.scope]
        unused = [glob for glob in entry.scope if glob not in globs]
        if not entry.scope or not (further or unused):
            continue
        found = [f"not in the scope of {entry.id}: {', '.join(further)}"] if further else []
        found += [f"in the scope, not in the lane: {', '.join(unused)}"] if unused else []
        yield Advice("scope", (lane,), "; ".join(found), f"globs as proposed: {', '.join(entry.scope)}")


def _least_headroom(campaign: CampaignPlan) -> float | None:
    noise = campaign.test_plan.noise
    return None if noise is None else campaign.test_plan.sigma_min * noise.sigma


def _stage(entry: SearchPlanEntry) -> str:
    return " ".join(entry.target_stage.casefold().split())


def _under_noise(campaign: CampaignPlan, least: float) -> str:
    noise = campaign.test_plan.noise
    of_which = "" if noise is None else f" (sigma {_percent(noise.sigma)} a trial, by `{noise.instrument}`)"
    return f"under {campaign.test_plan.sigma_min:g} sigma of the noise, {_percent(least)}{of_which}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"


def _some(paths: Sequence[str]) -> str:
    left = len(paths) - _SHOWN_PATHS
    return ", ".join(paths[:_SHOWN_PATHS]) + (f" and {left} more" if left > 0 else "")
