"""What freezing fills in: the gates in force, and what a lane inherits from its search plan entry."""

from __future__ import annotations

from roundkit.models.campaign import CampaignPlan, TestPlan
from roundkit.models.round_plan import FrozenLane, Gates, LaneDraft, RoundDraft, Tightening


def gates_in_force(test_plan: TestPlan, tightening: Tightening) -> Gates:
    """Return the campaign's gates with what the round tightens."""
    given = {name: getattr(test_plan, name) for name in Gates.model_fields}
    tighter = {name: value for name, value in tightening.model_dump().items() if value is not None}
    return Gates(**{**given, **tighter})


def freeze_lane(lane: LaneDraft, campaign: CampaignPlan, draft: RoundDraft) -> FrozenLane:
    """Return a lane with its entry's plane, stage and hypothesis, and with a deadline.

    Raises:
        LookupError: the search plan lacks the entry, which the refusals exclude.
    """
    entries = [entry for entry in campaign.search_plan if entry.id == lane.entry]
    if not entries:
        raise LookupError(f"the search plan has no entry {lane.entry}")
    entry = entries[0]
    plane = entry.plane if isinstance(entry.plane, str) else entry.plane[0]
    inherited = {
        "plane": plane,
        "target_stage": entry.target_stage,
        "hypothesis": entry.hypothesis,
        "deadline_utc": lane.deadline_utc or draft.deadline_utc,
    }
    own = {name: getattr(lane, name) for name in FrozenLane.model_fields if name not in inherited}
    return FrozenLane(**own, **inherited)
