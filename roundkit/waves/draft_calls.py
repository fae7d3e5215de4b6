"""Calls about drafts that a command only reads: the prefilter's, the scorer's and the harvest's."""

from __future__ import annotations

from typing import TypeVar

from roundkit.host.confine import Mount
from roundkit.models.base import Record
from roundkit.models.wave_calls import HarvestRequest, PrefilterRequest
from roundkit.models.wave_plan import WaveCommand
from roundkit.waves.calls import DRAFTS, Called, Calls
from roundkit.waves.run_folder import RunFolder
from roundkit.waves.staging import lay_out, new_folder

R = TypeVar("R", bound=Record)


def ask_about_drafts(
    calls: Calls,
    run: RunFolder,
    name: str,
    command: WaveCommand,
    request: PrefilterRequest | HarvestRequest,
    answer: type[R],
    *,
    folder: str | None = None,
) -> Called[R]:
    """Lay out copies of a request's drafts, and run a command that reads them to its end.

    Args:
        calls: Makes the call.
        run: The run that has the drafts' bytes, and gets the command's log.
        name: Which of the plan's commands.
        command: What to run.
        request: What it reads; its drafts lie at :data:`roundkit.waves.calls.DRAFTS`.
        answer: What it is to write.
        folder: What the call's own folder is named after, where not after the command.

    Raises:
        CallBroke: the call ended through no doing of its command.
        ConfinementUnavailable: the host cannot confine a command.
        OSError: something cannot be written.
    """
    place = new_folder(run.staging, folder or name)
    laid = lay_out(place / "drafts", ((draft.path, run.store.get(draft.sha256)) for draft in request.drafts))
    return calls.ask(
        name, command, request, answer,
        folder=place / "call", log=run.log(name), staging=lay_out(place / "staging", ()),
        readable=(Mount(laid, DRAFTS),),
    )  # fmt: skip
