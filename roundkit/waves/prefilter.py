"""The prefilter's step: one cheap call a wave, of which only an explicit agreement passes."""

from __future__ import annotations

from roundkit.host.confine import Mount
from roundkit.models.wave_calls import PrefilterAnswer, PrefilterRequest, PrefilterResult
from roundkit.rules.wave_pick import judged
from roundkit.waves.calls import DRAFTS, Calls
from roundkit.waves.run_folder import RunFolder
from roundkit.waves.staging import lay_out, new_folder


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
    folder = new_folder(run.staging, "prefilter")
    laid = lay_out(folder / "drafts", ((draft.path, run.store.get(draft.sha256)) for draft in drafts))
    request = PrefilterRequest(tag=run.run.tag, drafts=drafts, targets=run.owners.targets, folder=str(DRAFTS))
    called = calls.ask(
        "prefilter", calls.campaign.plan.plan.gate.prefilter, request, PrefilterAnswer,
        folder=folder / "call", log=run.log("prefilter"), staging=lay_out(folder / "staging", ()),
        readable=(Mount(laid, DRAFTS),),
    )  # fmt: skip
    return judged(drafts, called.answer, called.failure), called.failure or None
