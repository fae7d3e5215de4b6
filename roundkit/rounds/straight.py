"""A frozen round straight to its end: launch, replay every lane, measure, close."""

from __future__ import annotations

from collections.abc import Callable

from roundkit.models.round_plan import FrozenLane
from roundkit.rounds.close import CloseOutcome, close
from roundkit.rounds.drive_replay import replay_lane
from roundkit.rounds.launch import launch
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.serve import Report, serve


def run_straight(
    folder: RoundFolder, *, report: Report, as_played: Callable[[FrozenLane], FrozenLane] | None = None
) -> CloseOutcome:
    """Run a frozen round of replayed lanes to its evidence.

    Args:
        folder: The round.
        report: Takes one line for each thing that happens.
        as_played: Turns a lane of the plan into what its agent makes of it; the demo cheats here.
    """
    plan = read_plan(folder)
    manifest = launch(folder, posted_digest=plan.digest())
    report(f"{len(manifest.lanes)} lanes launched")
    for lane in plan.lanes:
        played = as_played(lane) if as_played is not None else lane
        replay_lane(folder, plan, lane, report=report, as_played=played)
    serve(folder, until="idle", report=report)
    return close(folder, report=report)
