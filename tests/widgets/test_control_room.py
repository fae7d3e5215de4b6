"""The control room without a browser: it never shows as current what it can no longer see."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.killing import wait_for

from roundkit.core.errors import Refused
from roundkit.rounds.control_room import Room, read_room
from roundkit.rounds.layout import RoundFolder
from roundkit.widgets import control_room
from roundkit.widgets.actions import PAUSE, PAUSED_HERE, Action, perform
from roundkit.widgets.control import ControlRoom


@pytest.fixture
def rooms(odd_round: RoundFolder) -> Iterator[tuple[ControlRoom, ControlRoom]]:
    """Two control rooms of one round."""
    both = (control_room(odd_round.root, refresh_s=0.02), control_room(odd_round.root, refresh_s=0.02))
    yield both
    for room in both:
        room.close()


def headline(room: ControlRoom) -> str:
    return str(room.widget.children[0].value)


@pytest.mark.parametrize("refresh_s", [0.0, -1.0, math.nan, math.inf])
def test_n06_a_time_between_two_looks_that_is_none_is_refused(
    odd_round: RoundFolder, refresh_s: float
) -> None:
    with pytest.raises(Refused, match="refresh-s"):
        control_room(odd_round.root, refresh_s=refresh_s)


def test_n06_two_rooms_show_what_either_does(
    rooms: tuple[ControlRoom, ControlRoom], odd_round: RoundFolder
) -> None:
    assert perform(odd_round, PAUSE).done
    for room in rooms:
        wait_for(lambda room=room: PAUSED_HERE in headline(room), "the pause in either room")


def test_n06_a_room_that_cannot_look_says_so_and_finds_the_round_again(
    rooms: tuple[ControlRoom, ControlRoom], odd_round: RoundFolder
) -> None:
    room, _ = rooms
    plan, kept = odd_round.plan_file, odd_round.root.parent / "kept.json"
    shutil.copy(plan, kept)
    plan.write_bytes(plan.read_bytes()[:-40])
    wait_for(lambda: "cannot be" in headline(room), "the damage")
    plan.unlink()
    shutil.copy(kept, plan)
    wait_for(lambda: "No serve runs; no ticket waits." in headline(room), "the round as it was")
    away = Path(f"{odd_round.root}-away")
    odd_round.root.rename(away)
    wait_for(lambda: "cannot be" in headline(room), "the loss")
    away.rename(odd_round.root)
    wait_for(lambda: "No serve runs; no ticket waits." in headline(room), "the round again")


def test_n06_a_fault_of_ours_ends_neither_the_look_nor_the_answer(odd_round: RoundFolder) -> None:
    def broken(_room: Room, _lane: str) -> str | None:
        raise ZeroDivisionError

    answer = perform(odd_round, Action("Hope", "Breaks", lambda _folder, _lane: None, broken))
    assert not answer.done
    assert "Hope: ZeroDivisionError" in answer.piece.text
    assert read_room(odd_round).status.paused is None
