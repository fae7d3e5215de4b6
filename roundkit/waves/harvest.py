"""Lessons of a gate, from banked targets only, for later draft agents; a failure is told, no more."""

from __future__ import annotations

from typing import Literal

from roundkit.core.files import atomic_write
from roundkit.evidence import wave_layout as names
from roundkit.models.wave_calls import HarvestAnswer, HarvestRequest
from roundkit.models.wave_gate import GateRun
from roundkit.waves.calls import DRAFTS, Calls
from roundkit.waves.draft_calls import ask_about_drafts
from roundkit.waves.run_folder import RunFolder


def harvest(calls: Calls, run: RunFolder) -> tuple[Literal["done", "failed", "none"], str | None]:
    """Take lessons of what a run banked; return how that went, and why not.

    Args:
        calls: Makes the call.
        run: The run, with its commit recorded.

    Raises:
        CallBroke: the call ended through no doing of its command.
        ConfinementUnavailable: the host cannot confine a command.
        OSError: something cannot be written.
    """
    campaign, banked = calls.campaign, run.commit.banked
    command = campaign.plan.plan.harvest
    if command is None or not banked:
        return "none", None
    keys = {(draft.group, draft.name) for draft in banked}
    request = HarvestRequest(
        tag=run.run.tag,
        targets=tuple(target for target in run.owners.targets if target.key in keys),
        drafts=banked,
        folder=str(DRAFTS),
    )
    called = ask_about_drafts(calls, run, "harvest", command, request, HarvestAnswer)
    if called.answer is None:
        return "failed", called.failure
    lessons = campaign.at(names.LESSONS)
    lessons.mkdir(exist_ok=True)
    atomic_write(lessons / lessons_name(run.run), called.answer.lessons.encode())
    return "done", None


def lessons_name(run: GateRun) -> str:
    """Return the name of a run's file of lessons; the first run of a wave has the wave's."""
    return f"{run.tag}.md" if run.number == 1 else f"{run.tag}-{run.number}.md"
