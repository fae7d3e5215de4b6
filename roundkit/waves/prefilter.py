"""The prefilter's step: one cheap call a wave, of which only an explicit agreement passes."""

from __future__ import annotations

from roundkit.models.wave_calls import PrefilterAnswer, PrefilterRequest, PrefilterResult
from roundkit.rules.wave_pick import judged
from roundkit.waves.calls import DRAFTS, Calls
from roundkit.waves.draft_calls import ask_about_drafts
from roundkit.waves.run_folder import RunFolder


def prefilter(calls: Calls, run: RunFolder) -> tuple[list[PrefilterResult], str | None]:
    """Return one result a draft that has an owner, and why there was no answer, null where there was one.

    Args:
        calls: Makes the call.
        run: The run, with its owners recorded.

    Raises:
        CallBroke: the call ended through no doing of its command.
        ConfinementUnavailable: the host cannot confine a command.
        OSError: something cannot be written.
    """
    drafts = run.owners.drafts
    if not drafts:
        return [], None
    request = PrefilterRequest(tag=run.run.tag, drafts=drafts, targets=run.owners.targets, folder=str(DRAFTS))
    command = calls.campaign.plan.plan.gate.prefilter
    called = ask_about_drafts(calls, run, "prefilter", command, request, PrefilterAnswer)
    return judged(drafts, called.answer, called.failure), called.failure or None
