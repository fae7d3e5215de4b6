"""Why a round's lanes are refused: their number, their entries, their budgets and what they may change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roundkit.core.errors import Refusal
from roundkit.models.round_plan import LaneBudget, LaneDraft
from roundkit.models.search_plan import SearchPlanEntry
from roundkit.rules.round_facts import RoundFacts
from roundkit.rules.scope import empty_globs, overlaps, protected_reach

_SHOWN_PATHS = 5


def lane_refusals(facts: RoundFacts) -> list[Refusal]:
    """Return every problem with the lanes of a round."""
    checks = (_lane_count_problems, _entry_problems, _lane_problems, _scope_problems, _overlap_problems)
    return [refusal for check in checks for refusal in check(facts)]


def _lane_count_problems(facts: RoundFacts) -> Iterator[Refusal]:
    allowed = facts.campaign.budget.lanes_per_round
    if len(facts.draft.lanes) > allowed:
        yield Refusal(
            "too-many-lanes",
            f"{len(facts.draft.lanes)} lanes, and the campaign allows {allowed} a round",
            facts.round_at("lanes"),
            "leave lanes for a later round, or raise budget.lanes_per_round in the campaign",
        )
    seen: dict[str, str] = {}
    for index, lane in enumerate(facts.draft.lanes):
        # Lane ids become folder names, which some file systems compare without case.
        folded = lane.id.casefold()
        if folded in seen:
            yield Refusal(
                "lane-twice",
                f"lane {lane.id!r} has the same id as lane {seen[folded]!r}",
                facts.round_at("lanes", index, "id"),
                "give each lane an id of its own",
            )
        seen.setdefault(folded, lane.id)


def _entry_problems(facts: RoundFacts) -> Iterator[Refusal]:
    taken: dict[str, str] = {}
    for index, lane in enumerate(facts.draft.lanes):
        place = facts.round_at("lanes", index, "entry")
        if lane.entry in taken:
            yield Refusal(
                "entry-twice",
                f"lanes {taken[lane.entry]!r} and {lane.id!r} both pursue {lane.entry!r}",
                place,
                "one entry, one lane: choose another entry or drop the lane",
            )
        taken.setdefault(lane.entry, lane.id)
        entry = facts.entries.get(lane.entry)
        if entry is None:
            yield Refusal(
                "entry-unknown",
                f"the search plan has no entry {lane.entry!r}",
                place,
                f"choose one of: {', '.join(facts.entries) or 'none is there'}",
            )
            continue
        yield from _one_entry_problems(facts, lane, entry, place)


def _one_entry_problems(
    facts: RoundFacts, lane: LaneDraft, entry: SearchPlanEntry, place: str
) -> Iterator[Refusal]:
    position = facts.campaign.search_plan.index(entry)
    planes = (entry.plane,) if isinstance(entry.plane, str) else entry.plane
    if len(planes) != 1 or not planes[0].strip():
        yield Refusal(
            "plane-count",
            f"entry {entry.id!r} of lane {lane.id!r} names {len(planes)} planes: {list(planes)}",
            facts.campaign_at("search_plan", position, "plane"),
            "name exactly one plane; split the entry if it changes two kinds of thing",
        )
    if entry.status != "planned":
        yield Refusal(
            "entry-not-planned",
            f"entry {entry.id!r} of lane {lane.id!r} is {entry.status!r}",
            place,
            "choose an entry whose status is `planned`",
        )
    failed = [record for record in facts.campaign.negative_memory if record.entry == entry.id]
    if failed and not (lane.changed_condition or "").strip():
        last = failed[-1]
        yield Refusal(
            "negative-record",
            f"entry {entry.id!r} failed in round {last.round} ({last.reason}) under: {last.conditions}",
            facts.round_at("lanes", facts.draft.lanes.index(lane)),
            "state in `changed_condition` what is different now, or choose another entry",
        )


def _lane_problems(facts: RoundFacts) -> Iterator[Refusal]:
    for index, lane in enumerate(facts.draft.lanes):
        for name in LaneBudget.model_fields:
            cap, worst = getattr(lane.budget, name), getattr(lane.attempt_worst_case, name)
            place = facts.round_at("lanes", index, "attempt_worst_case", name)
            if cap is not None and worst is None:
                yield Refusal(
                    "attempt-uncapped",
                    f"lane {lane.id!r} caps {name} at {cap}, and one attempt could use any amount of it",
                    place,
                    f"state the most {name} that one attempt may use",
                )
            elif cap is not None and worst > cap:
                yield Refusal(
                    "attempt-over-budget",
                    f"one attempt of lane {lane.id!r} may use {worst} {name}, more than the lane's {cap}",
                    place,
                    "no attempt could start: lower the worst case or raise the budget",
                )
        if lane.harness == "replay" and not lane.replay:
            yield Refusal(
                "replay-sources",
                f"lane {lane.id!r} replays nothing",
                facts.round_at("lanes", index, "replay"),
                "name the commits, the branch or the patch files that it replays",
            )


def _scope_problems(facts: RoundFacts) -> Iterator[Refusal]:
    if facts.paths is None:
        return
    for index, lane in enumerate(facts.draft.lanes):
        place = facts.round_at("lanes", index, "globs")
        reached = protected_reach(lane.globs, facts.protected, facts.protected_paths)
        if reached:
            yield Refusal(
                "protected-path",
                f"lane {lane.id!r} reaches {_some(reached)}",
                place,
                "narrow the globs: what judges or builds a candidate is nobody's to change",
            )
        if lane.creates:
            continue
        for glob in empty_globs(lane.globs, facts.paths):
            yield Refusal(
                "glob-matches-nothing",
                f"{glob!r} of lane {lane.id!r} matches no file of the incumbent",
                facts.round_at("lanes", index, "globs", lane.globs.index(glob)),
                "correct it, or set `creates: true` when the lane is to create such files",
            )


def _overlap_problems(facts: RoundFacts) -> Iterator[Refusal]:
    if facts.paths is None:
        return
    lanes = facts.draft.lanes
    for overlap in overlaps([(lane.id, lane.globs) for lane in lanes], facts.paths):
        last = max(index for index, lane in enumerate(lanes) if lane.id == overlap.second)
        yield Refusal(
            "scope-overlap",
            f"lanes {overlap.first!r} and {overlap.second!r} may both change {_some(overlap.paths)}",
            facts.round_at("lanes", last, "globs"),
            "give each path to one lane, or merge the two lanes",
        )


def _some(paths: Sequence[str]) -> str:
    shown = ", ".join(repr(path) for path in paths[:_SHOWN_PATHS])
    left = len(paths) - _SHOWN_PATHS
    return f"{shown} and {left} more" if left > 0 else shown
