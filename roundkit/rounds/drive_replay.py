"""One lane filled by a replay: reserved, claimed, played in the lane's boundary, settled."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Literal

from roundkit.agents.replay import CannotReplay, ReplayOutcome, check_sources, run_replay
from roundkit.agents.replay_room import ReplayRoom
from roundkit.core.clock import Deadline, now_utc
from roundkit.core.errors import Refused, refuse
from roundkit.models.attempts import Cost
from roundkit.models.round_plan import FrozenLane, RoundPlan
from roundkit.rounds import attempts
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.locks import hold_lock
from roundkit.rules.attempts import open_reservation, remaining_s


def replay_lane(
    folder: RoundFolder,
    plan: RoundPlan,
    lane: FrozenLane,
    *,
    report: Callable[[str], None],
    as_played: FrozenLane | None = None,
) -> Literal["driven", "refused"]:
    """Replay one lane as one attempt: reserved, claimed, run until its deadline, settled.

    A lane that was driven to its end, or that has no attempt left, is left alone. Whatever breaks after the
    claim leaves the attempt claimed, and charged.

    Args:
        folder: A launched round.
        plan: Its plan.
        lane: A lane of the plan, whose budget is charged.
        report: Takes one line for each thing that happens.
        as_played: The lane as its agent plays it, where that is not the lane of the plan.
    """
    lock = folder.drive_lock(lane.id)
    try:
        with hold_lock(lock, code="lane-driven", what=f"a driver of lane {lane.id}"):
            book = attempts.read_account(folder, lane.id)
            if book.driven or (book.records and book.used_up and open_reservation(book) is None):
                phases = ", ".join(record.phase for record in book.records)
                report(f"{lane.id}: already driven (attempts: {phases})")
                return "driven"
            _check(as_played or lane, plan)
            binding = attempts.claim_next(folder, lane.id, "replay")
            outcome, wall_s = _run(folder, plan, lane, as_played or lane, afresh=binding.ordinal > 1)
            actual = Cost(turns=0, tokens=0, micro_usd=0, wall_s=ceil(wall_s))
            attempts.settle(folder, binding, actual)
    except Refused as error:
        report(f"{lane.id} not driven: {error}")
        return "refused"
    report(f"{lane.id} submitted {', '.join(outcome.tickets) or 'nothing'}")
    for problem in outcome.problems:
        report(f"{lane.id}: {problem}")
    return "driven"


def _check(played: FrozenLane, plan: RoundPlan) -> None:
    try:
        check_sources(played, Path(plan.repository), base=plan.incumbent)
    except CannotReplay as error:
        raise refuse(
            "replay-sources",
            str(error),
            place=f"round-plan.json: lanes.{played.id}.replay",
            remedy="nothing was claimed: bring it back and launch again, or freeze a round that names others",
        ) from error


def _run(
    folder: RoundFolder, plan: RoundPlan, lane: FrozenLane, played: FrozenLane, *, afresh: bool
) -> tuple[ReplayOutcome, float]:
    """Replay a lane within the time that it has left; return what came of it, and the seconds it took."""
    started = time.monotonic()
    outcome = run_replay(
        played,
        replay_room(folder, plan, lane),
        Path(plan.repository),
        base=plan.incumbent,
        deadline=Deadline.after(remaining_s(lane, now_utc())),
        afresh=afresh,
    )
    return outcome, time.monotonic() - started


def replay_room(folder: RoundFolder, plan: RoundPlan, lane: FrozenLane) -> ReplayRoom:
    """Return the boundary in which a lane is replayed."""
    return ReplayRoom(
        clone=folder.clone(lane.id).resolve(),
        home=folder.homes.resolve() / lane.id,
        hidden=(folder.root, folder.lanes, Path(plan.repository)),
        limits=plan.campaign.limits,
        python=plan.runtime.python,
        readable=tuple(map(Path, plan.runtime.readable)),
    )
