"""The round's instrument: tried behind the boundary before anything is frozen, refused where missing."""

from __future__ import annotations

from roundkit.core.errors import Refusal
from roundkit.measure.instruments import instrument_state
from roundkit.models.campaign import CampaignPlan
from roundkit.models.instruments import CountingTool, Instrument
from roundkit.models.readings import PEAK_MEMORY_METRIC
from roundkit.rules.round_facts import Place


def resolve_instrument(campaign: CampaignPlan, at: Place) -> tuple[CountingTool | None, list[Refusal]]:
    """Try what the plan measures with, under the plan's own limits.

    Args:
        campaign: The campaign plan.
        at: Names a place in the campaign file.

    Returns:
        What counts instructions in this round, null where they do not decide; and what stands against the
        plan: ``instrument-missing``, with what would bring the instrument here.
    """
    tool: CountingTool | None = None
    refusals = []
    for name, place in _wanted(campaign, at):
        state = instrument_state(name, campaign.limits)
        tool = state.tool or tool
        if not state.present:
            refusals.append(
                Refusal(
                    "instrument-missing",
                    f"this machine does not give `{name}`: {state.detail}",
                    place,
                    state.remedy or "choose another instrument",
                )
            )
    return tool, refusals


def _wanted(campaign: CampaignPlan, at: Place) -> list[tuple[Instrument, str]]:
    """List what the host itself must give; the benchmark's own figure and a wall clock are always there."""
    instrument = campaign.benchmark.instrument
    wanted: list[tuple[Instrument, str]] = []
    if instrument not in ("reported", "wall"):
        wanted.append((instrument, at("benchmark", "instrument")))
    for position, guard in enumerate(campaign.metric.guards):
        if guard.name == PEAK_MEMORY_METRIC and instrument != "peak-memory":
            wanted.append(("peak-memory", at("metric", "guards", position)))
    return wanted
