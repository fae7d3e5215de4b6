"""Presets of agents, written out before a round is frozen: a plan holds what is started, no mere name."""

from __future__ import annotations

from collections.abc import Callable

from roundkit.agents.drivers.presets import load_preset
from roundkit.core.errors import Refusal, Refused
from roundkit.models.lane_agent import LaneAgent
from roundkit.models.round_plan import LaneDraft, RoundDraft


def with_presets(draft: RoundDraft, at: Callable[..., str]) -> tuple[RoundDraft, list[Refusal]]:
    """Return a draft whose lanes hold the templates that they named, and what stands against that.

    Args:
        draft: The round as its owner wrote it.
        at: Returns the place of a key in the owner's file.
    """
    lanes: list[LaneDraft] = []
    refusals: list[Refusal] = []
    for number, lane in enumerate(draft.lanes):
        place = at("lanes", number, "agent")
        try:
            lanes.append(_with_preset(lane))
        except Refused as error:
            refusals += [Refusal(row.code, row.message, place, row.remedy) for row in error.refusals]
            lanes.append(lane)
        refusals += _problems(lane, place)
    return draft.model_copy(update={"lanes": tuple(lanes)}), refusals


def _with_preset(lane: LaneDraft) -> LaneDraft:
    if lane.agent is None:
        return lane
    return lane.model_copy(update={"agent": with_preset(lane.agent)})


def with_preset(agent: LaneAgent) -> LaneAgent:
    """Return an agent that holds the template which it named.

    Raises:
        Refused: ``unknown-preset``.
    """
    if agent.preset is None or agent.command is not None:
        return agent
    return agent.model_copy(update={"command": load_preset(agent.preset)})


def _problems(lane: LaneDraft, place: str) -> list[Refusal]:
    agent = lane.agent
    if agent is not None and agent.preset is not None and agent.command is not None:
        remedy = "keep one of the two; a preset can be copied from templates/presets and edited"
        return [Refusal("command-twice", f"lane {lane.id} names a preset and a command", place, remedy)]
    named = agent is not None and (agent.preset is not None or agent.command is not None)
    if lane.harness == "command" and not named:
        remedy = "name a preset in `agent.preset`, or write `agent.command`"
        return [Refusal("command-missing", f"lane {lane.id} does not say what is started", place, remedy)]
    return []
