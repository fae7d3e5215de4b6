"""Lane clones outside the round directory, for a team whose tools cannot leave its own workspace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from roundkit.core.errors import refuse
from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.layout import RoundFolder


def place_lanes(folder: RoundFolder, plan: RoundPlan, round_root: Path) -> None:
    """Have a round's clones lie below a folder; a link in the round directory leads there.

    The store stays where it is: whoever works in such a workspace could write it there.

    Args:
        folder: The round.
        plan: Its plan.
        round_root: The workspace.

    Raises:
        Refused: ``round-root-missing``; ``round-root``: the workspace and something that no lane may see, or
            that boundaries of the plan show, lie in one another; ``round-root-taken``; ``lanes-elsewhere``:
            the round has its clones already.
    """
    target = round_root.resolve() / f"{plan.round_id}-lanes"
    link = folder.root / "lanes"
    if link.is_symlink() or link.exists():
        if folder.lanes == target:
            return
        raise refuse(
            "lanes-elsewhere",
            f"the round's clones lie in {folder.lanes}",
            place="--round-root",
            remedy="go on without --round-root, or prepare the round anew",
        )
    if not round_root.is_dir():
        raise refuse("round-root-missing", f"{round_root} is no folder", place="--round-root")
    for apart in _apart(folder, plan):
        if target.is_relative_to(apart) or apart.is_relative_to(round_root.resolve()):
            raise refuse(
                "round-root",
                f"{round_root} and {apart} lie in one another",
                place="--round-root",
                remedy="name a workspace of its own, which nothing but its team uses",
            )
    target.mkdir(exist_ok=True)
    if any(target.iterdir()):
        raise refuse(
            "round-root-taken",
            f"{target} holds something already",
            place="--round-root",
            remedy="move it away, or name another folder",
        )
    link.symlink_to(target)


def _apart(folder: RoundFolder, plan: RoundPlan) -> Iterator[Path]:
    """Yield what a workspace must not share: coordinator's state, and what boundaries of the plan show."""
    yield folder.root.resolve()
    yield Path(plan.repository).resolve()
    shown = [
        *plan.runtime.readable,
        *(name for lane in plan.lanes if lane.agent for name in lane.agent.readable),
    ]
    yield from (Path(name).resolve() for name in shown)
