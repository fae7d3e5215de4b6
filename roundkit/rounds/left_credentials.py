"""Copies of credential files that a killed launch left: removed by whatever touches the round next."""

from __future__ import annotations

from contextlib import suppress

from roundkit.agents.lane_boundary import COPIES
from roundkit.core.errors import Refused
from roundkit.measure.trees import remove_tree
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.locks import hold_lock, is_held


def remove_left_credentials(folder: RoundFolder) -> None:
    """Remove the copies of every lane in which no agent runs; whoever drives a lane holds its lock.

    A place that this process may not change stays as it is: its owner's next command changes it.

    Args:
        folder: The round.
    """
    for copies in folder.homes.glob(f"*{COPIES}"):
        lane = copies.name.removesuffix(COPIES)
        lock = folder.drive_lock(lane)
        if is_held(lock):
            continue
        with (
            suppress(Refused, OSError),
            hold_lock(lock, code="lane-driven", what=f"a driver of lane {lane}"),
        ):
            remove_tree(copies)
