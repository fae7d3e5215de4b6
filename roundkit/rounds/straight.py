"""A frozen round straight to its end: launch, replay every lane, measure, close."""

from __future__ import annotations

from collections.abc import Callable

from roundkit.core.errors import RoundkitError
from roundkit.core.progress import SILENT, Progress
from roundkit.models.round_plan import FrozenLane
from roundkit.rounds.close import CloseOutcome, close
from roundkit.rounds.drive_replay import replay_lane
from roundkit.rounds.launch import launch
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.serve import serve


def run_straight(
    folder: RoundFolder,
    *,
    progress: Progress = SILENT,
    as_played: Callable[[FrozenLane], FrozenLane] | None = None,
) -> CloseOutcome:
    """Run a frozen round of replayed lanes to its evidence.

    Args:
        folder: The round.
        progress: Takes a line for each thing that happens, and shows clones, tickets and trials.
        as_played: Turns a lane of the plan into what its agent makes of it; the demo cheats here.

    Raises:
        RoundkitError: it was stopped by hand, or the queue was paused, before everything was measured.
    """
    plan, report = read_plan(folder), progress.say
    manifest = launch(folder, posted_digest=plan.digest(), progress=progress)
    report(f"{len(manifest.lanes)} lanes launched")
    with progress.task("filling lanes", len(plan.lanes), "lanes") as filled:
        for lane in plan.lanes:
            played = as_played(lane) if as_played is not None else lane
            replay_lane(folder, plan, lane, report=report, as_played=played)
            filled.advance()
    served = serve(folder, until="idle", report=report, progress=progress)
    if served.ended != "idle":
        why = f"the queue is paused: {served.paused}" if served.paused else "stopped by hand"
        resume = f"`roundkit resume {folder.root}`, " if served.paused else ""
        raise RoundkitError(
            f"{why}; the round stays at {folder.root}: {resume}`roundkit serve {folder.root} --until-idle`,"
            f" then `roundkit close {folder.root}`"
        )
    return close(folder, report=report, progress=progress)
