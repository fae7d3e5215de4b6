"""What a person may do in the control room. Nothing counts as done before the round's state says so."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from roundkit.core.clock import now_utc
from roundkit.core.errors import Refused
from roundkit.rounds import control
from roundkit.rounds.background import start_close, start_serve
from roundkit.rounds.control_room import Room, read_room
from roundkit.rounds.layout import RoundFolder
from roundkit.widgets.pieces import Piece, moment, sentence, together

PAUSED_HERE = "paused in the control room"
_PATIENCE_S = 20.0
_POLL_S = 0.1


@dataclass(frozen=True)
class Action:
    """One button.

    Attributes:
        label: What stands on it.
        tooltip: What it does, in a sentence.
        act: Does it; takes the round and, where the action is about a lane, the lane.
        arrived: What the room says once it is done; null while it does not say so.
        question: Asked before it is done; empty for what can be undone.
    """

    label: str
    tooltip: str
    act: Callable[[RoundFolder, str], object]
    arrived: Callable[[Room, str], str | None]
    question: str = ""


@dataclass(frozen=True)
class Answer:
    """What came of an action.

    Attributes:
        done: Whether the round's state says that it is done.
        piece: The sentence for the person who asked.
    """

    done: bool
    piece: Piece


def perform(folder: RoundFolder, action: Action, lane: str = "", patience_s: float = _PATIENCE_S) -> Answer:
    """Do what a button says, and read back from the round whether it is so.

    Args:
        folder: The round.
        action: What to do.
        lane: The lane, where the action is about one.
        patience_s: How long the round's state may take to show it.

    Returns:
        What came of it; a refusal is an answer as well, with its remedy.
    """
    try:
        action.act(folder, lane)
        return _read_back(folder, action, lane, time.monotonic() + patience_s)
    except Refused as refused:
        return Answer(False, refusal_sentences(f"{action.label}: refused.", refused))
    except Exception as error:
        # Whatever it is: nobody may be left waiting for an answer.
        first, _, rest = (str(error) or type(error).__name__).partition("\n")
        return Answer(False, sentence(f"{action.label}: {first}", "bad", remedy=rest.strip().lstrip("→ ")))


def refusal_sentences(what: str, refused: Refused) -> Piece:
    """Return every reason of a refusal as a sentence with its remedy."""
    return together(
        *(
            sentence(f"{what} {one.message} [{one.code}]", "bad", remedy=one.remedy)
            for one in refused.refusals
        )
    )


def _read_back(folder: RoundFolder, action: Action, lane: str, end_s: float) -> Answer:
    while True:
        said = action.arrived(read_room(folder), lane)
        if said is not None:
            return Answer(True, sentence(f"{action.label}, {moment(now_utc())}. Read back: {said}", "good"))
        if time.monotonic() >= end_s:
            late = "it was asked for, and the round does not show it yet"
            return Answer(False, sentence(f"{action.label}: {late}", "bad", remedy="look at the log below"))
        time.sleep(_POLL_S)


def _served(room: Room, _: str) -> str | None:
    return f"serve runs, {room.status.serve}." if room.status.serve else None


def _is_paused(room: Room, _: str) -> str | None:
    paused = room.status.paused
    return f"the queue is paused: {paused}." if paused is not None and not room.resuming else None


def _is_resumed(room: Room, _: str) -> str | None:
    if room.status.paused is None:
        return "the queue is open."
    if not room.resuming:
        return None
    nobody = "" if room.status.serve else "; no serve runs that could make it"
    return f"the queue goes on once one new A/A check has passed{nobody}."


def _is_drained(room: Room, _: str) -> str | None:
    if room.status.serve is None:
        return "serve has ended; what waits stays queued."
    return "serve ends after what is being measured now." if room.draining else None


def _is_stopped(room: Room, lane: str) -> str | None:
    if lane not in room.stopped_lanes:
        return None
    return f"lane {lane} takes no more submissions; its accepted tickets are still measured."


def _is_closing(room: Room, _: str) -> str | None:
    closing = room.closing
    if closing.advanced is not None:
        return "the round is closed."
    return f"close runs, {closing.running}." if closing.running else None


SERVE = Action(
    "Start serve",
    "Measure tickets as they come, until the round's deadline, in a process of its own",
    lambda folder, _: start_serve(folder, until="deadline"),
    _served,
)
PAUSE = Action(
    "Pause",
    "Measure nothing new; submissions are still taken in",
    lambda folder, _: control.pause(folder, PAUSED_HERE),
    _is_paused,
)
RESUME = Action(
    "Resume",
    "Let the queue go on after one passing A/A check",
    lambda folder, _: control.resume(folder),
    _is_resumed,
)
DRAIN = Action(
    "Drain",
    "End serve after what it measures now; everything else stays queued",
    lambda folder, _: control.drain(folder),
    _is_drained,
)
STOP_LANE = Action(
    "Stop lane",
    "End the chosen lane's intake for good",
    control.stop_lane,
    _is_stopped,
    question="The lane will take no more submissions, and nothing opens it again.",
)
CLOSE = Action(
    "Close",
    "Select, compose, rerun, export the evidence and advance the incumbent",
    lambda folder, _: start_close(folder),
    _is_closing,
    question="Closing decides the round: from then on nothing more is taken in or measured for tickets.",
)
ACTIONS = (SERVE, PAUSE, RESUME, DRAIN, STOP_LANE, CLOSE)
