"""What the buttons do, without a browser: the round's state is read back, refusals become sentences."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.killing import wait_for
from support.synthetic import knob, scripted_lane

from roundkit.rounds import background
from roundkit.rounds.background import CommandEnded, start_close, start_serve
from roundkit.rounds.control import read_status
from roundkit.rounds.control_room import next_deadline, read_pulse, read_room
from roundkit.rounds.layout import RoundFolder
from roundkit.widgets import actions
from roundkit.widgets.actions import CLOSE, DRAIN, PAUSE, RESUME, SERVE, STOP_LANE, perform


def test_n06_every_answer_is_read_back_from_the_round(odd_round: RoundFolder) -> None:
    paused = perform(odd_round, PAUSE)
    assert paused.done
    assert f"the queue is paused: {actions.PAUSED_HERE}" in paused.piece.text
    assert read_status(odd_round).paused == actions.PAUSED_HERE
    resumed = perform(odd_round, RESUME)
    assert resumed.done
    assert "no serve runs that could make it" in resumed.piece.text
    stopped = perform(odd_round, STOP_LANE, "L2")
    assert stopped.done
    assert read_room(odd_round).stopped_lanes == {"L2"}


def test_n06_a_refusal_is_a_sentence_with_its_remedy(odd_round: RoundFolder) -> None:
    for action, code, remedy in (
        (RESUME, "not-paused", "there is nothing to resume"),
        (DRAIN, "no-serve", "there is nothing to drain"),
    ):
        answer = perform(odd_round, action)
        assert not answer.done
        assert f"[{code}]" in answer.piece.text
        assert f"→ {remedy}" in answer.piece.text
        assert 'role="alert"' in answer.piece.markup


def test_n06_what_does_not_arrive_is_not_called_done(odd_round: RoundFolder) -> None:
    never = actions.Action("Hope", "Does nothing", lambda _folder, _lane: None, lambda _room, _lane: None)
    answer = perform(odd_round, never, patience_s=0.0)
    assert not answer.done
    assert "the round does not show it yet" in answer.piece.text


def test_n06_a_started_serve_is_found_by_whoever_comes_next(odd_round: RoundFolder, lease_root: Path) -> None:
    before = read_pulse(odd_round)
    answer = perform(odd_round, SERVE)
    assert answer.done, answer.piece.text
    room = read_room(odd_round)
    assert room.status.serve is not None
    assert f"pid {os.getpid()}" not in room.status.serve
    assert read_pulse(odd_round) != before
    ticket = scripted_lane(odd_round.clone("L1"), {"knobs/L1.json": knob(0.5)})["ticket"]
    wait_for(lambda: read_room(odd_round).measuring, "a measurement")
    wait_for(lambda: any(held.holders for held in read_room(odd_round).device_sets), "a holder")
    again = perform(odd_round, SERVE)
    assert not again.done
    assert "[serve-running]" in again.piece.text
    assert perform(odd_round, DRAIN).done
    wait_for(lambda: read_room(odd_round).status.serve is None, "the end of serve")
    assert ticket in "\n".join(background.log_tail(odd_round, "serve", 50))


def test_n06_close_is_refused_in_its_own_words_while_tickets_wait(odd_round: RoundFolder) -> None:
    scripted_lane(odd_round.clone("L1"), {"knobs/L1.json": knob(0.5)})
    answer = perform(odd_round, CLOSE)
    assert not answer.done
    assert "[tickets-waiting]" in answer.piece.text
    assert "→ run `roundkit serve ROUND_DIR --until-idle` first" in answer.piece.text
    assert "Traceback" not in answer.piece.text


def test_n06_close_in_a_process_of_its_own_shows_how_far_it_is(odd_round: RoundFolder) -> None:
    for line in start_serve(odd_round, until="idle").lines():
        assert line
    started = start_close(odd_round)
    assert [line for line in started.lines() if "the incumbent stays" in line]
    closing = read_room(odd_round).closing
    assert closing.begun
    assert closing.advanced == ""
    assert next_deadline(read_room(odd_round).plan, read_room(odd_round).plan.frozen_utc) is not None
    with pytest.raises(CommandEnded, match="round-closed"):
        start_serve(odd_round, until="idle")
