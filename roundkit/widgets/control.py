"""The control room of a round: what it does now, kept fresh beside the kernel's work, and buttons."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from roundkit.core.clock import now_utc
from roundkit.core.errors import Refused, refuse
from roundkit.rounds.background import log_tail
from roundkit.rounds.control_room import Room, read_pulse, read_room
from roundkit.rounds.layout import RoundFolder, round_folder
from roundkit.widgets import room_views as views
from roundkit.widgets.actions import ACTIONS, STOP_LANE, Action, perform, refusal_sentences
from roundkit.widgets.pieces import Piece, folded, listing, sentence, styled, titled, together
from roundkit.widgets.progress import without_folders

_LOG_LINES = 30
_LOGS = ("serve", "close", "launch")
_SECTIONS = ("headline", "clock", "closing", "tickets", "devices", "lanes", "checks", "log")
_ABOVE_BUTTONS = ("headline", "clock")


class ControlRoom:
    """A live view of one round with its buttons; several may look at the same round.

    Nothing of it is kept in the kernel: a new kernel, or another notebook, finds the round as it is.

    Args:
        round_dir: The round directory.
        refresh_s: Seconds between two looks at the round.

    Raises:
        Refused: there is no frozen round, its plan was changed, or it was pruned; or ``refresh-s``.
    """

    def __init__(self, round_dir: str | Path, *, refresh_s: float = 1.0) -> None:
        if not (math.isfinite(refresh_s) and refresh_s > 0):
            raise refuse(
                "refresh-s", f"{refresh_s} is no time between two looks", place="refresh_s", remedy="say 1.0"
            )
        self.folder = round_folder(Path(round_dir))
        self._refresh_s = refresh_s
        self._room = read_room(self.folder)
        self._pulse: tuple[object, ...] = ()
        self._ended = threading.Event()
        self._busy = threading.Lock()
        self._sections = {name: widgets.HTML() for name in _SECTIONS}
        self._answer = widgets.HTML()
        self._lane = widgets.Dropdown(
            options=[lane.id for lane in self._room.plan.lanes],
            description="Lane",
            layout=widgets.Layout(width="auto", margin="2px 2px 2px 1.5em"),
            style={"description_width": "initial"},
        )
        self._buttons = {action: self._button(action) for action in ACTIONS}
        self._confirm = Confirmation(self._start)
        self.widget = self._laid_out()
        self._show_room(self._room)
        threading.Thread(target=self._keep_fresh, name="control-room", daemon=True).start()

    @property
    def room(self) -> Room:
        """The round as it was read last."""
        return self._room

    def snapshot(self) -> Piece:
        """Return everything that it shows now, for whoever sees no widgets."""
        return together(*_pieces(self._room, self.folder).values())

    def close(self) -> None:
        """Look at the round no more."""
        self._ended.set()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = dict(self.widget._repr_mimebundle_(**options) or {})
        now = self.snapshot()
        return {**bundle, "text/html": styled(now.markup), "text/plain": now.text}

    def _laid_out(self) -> widgets.VBox:
        row = widgets.HBox(
            [
                *(button for action, button in self._buttons.items() if action is not STOP_LANE),
                widgets.HBox([self._lane, self._buttons[STOP_LANE]]),
            ],
            layout=widgets.Layout(flex_flow="row wrap", align_items="center"),
        )
        row.add_class("rk-buttons")
        above = [self._sections[name] for name in _ABOVE_BUTTONS]
        below = [self._sections[name] for name in _SECTIONS if name not in _ABOVE_BUTTONS]
        return widgets.VBox([*above, row, self._confirm.widget, self._answer, *below])

    def _button(self, action: Action) -> widgets.Button:
        label = f"{action.label}…" if action.question else action.label
        button = widgets.Button(description=label, tooltip=action.tooltip)
        button.layout.width = "auto"
        button.on_click(lambda _: self._asked(action))
        return button

    def _asked(self, action: Action) -> None:
        if action.question:
            self._answer.value = ""
            self._confirm.ask(action, self._lane.value if action is STOP_LANE else "")
        else:
            self._start(action, "")

    def _start(self, action: Action, lane: str) -> None:
        """Do it in a thread of its own: the kernel stays free for its notebook."""
        threading.Thread(target=self._perform, args=(action, lane or ""), daemon=True).start()

    def _perform(self, action: Action, lane: str) -> None:
        with self._busy:
            for button in self._buttons.values():
                button.disabled = True
            self._answer.value = styled(sentence(f"{action.label}: asking…").markup)
            try:
                answer = perform(self.folder, action, lane)
                self._look()
                self._answer.value = styled(answer.piece.markup)
            finally:
                for button in self._buttons.values():
                    button.disabled = False
                self._buttons[action].focus()

    def _keep_fresh(self) -> None:
        while not self._ended.wait(self._refresh_s):
            self._look()

    def _look(self) -> None:
        try:
            pulse = read_pulse(self.folder)
            if pulse != self._pulse:
                self._room = read_room(self.folder)
                self._pulse = pulse
            self._show_room(self._room)
        except Refused as refused:
            self._put("headline", refusal_sentences("This round cannot be shown.", refused))
        except Exception as error:
            # Whatever it is: a room that no longer looks must not go on showing what it saw last.
            said = str(error) or type(error).__name__
            self._put("headline", sentence(f"The round cannot be read now: {said}", "bad"))

    def _show_room(self, room: Room) -> None:
        for name, piece in _pieces(room, self.folder).items():
            self._put(name, piece)

    def _put(self, name: str, piece: Piece) -> None:
        """Change a section only where it differs, so that a selection or a scrolled table stays."""
        value = styled(piece.markup)
        if self._sections[name].value != value:
            self._sections[name].value = value


class Confirmation:
    """Asks before what cannot be undone.

    Args:
        confirmed: Called with the action and its lane.
    """

    def __init__(self, confirmed: Callable[[Action, str], None]) -> None:
        self._confirmed = confirmed
        self._about: tuple[Action, str] | None = None
        self._question = widgets.HTML()
        self._yes = widgets.Button(button_style="danger", layout=widgets.Layout(width="auto"))
        self._no = widgets.Button(description="Leave it", layout=widgets.Layout(width="auto"))
        self._yes.on_click(lambda _: self._end(go_on=True))
        self._no.on_click(lambda _: self._end(go_on=False))
        answers = widgets.HBox([self._yes, self._no])
        answers.add_class("rk-buttons")
        self.widget = widgets.VBox([self._question, answers])
        self.widget.layout.display = "none"

    def ask(self, action: Action, lane: str) -> None:
        """Ask about an action."""
        self._about = (action, lane)
        self._question.value = styled(sentence(action.question, "bad").markup)
        self._yes.description = f"{action.label} {lane}".strip() + " now"
        self.widget.layout.display = ""
        self._no.focus()

    def _end(self, *, go_on: bool) -> None:
        about, self._about = self._about, None
        self.widget.layout.display = "none"
        if about is not None and go_on:
            self._confirmed(*about)


def control_room(round_dir: str | Path, *, refresh_s: float = 1.0) -> ControlRoom:
    """Return the control room of a round; it finds a serve or close that is running already.

    Raises:
        Refused: there is no frozen round, its plan was changed, or it was pruned.
    """
    return ControlRoom(round_dir, refresh_s=refresh_s)


def _pieces(room: Room, folder: RoundFolder) -> dict[str, Piece]:
    now = now_utc()
    closing = titled("Closing", views.composition(room.closing)) if room.closing.begun else together()
    lines = {name: _last_lines(folder, name) for name in _LOGS}
    logs = [
        folded(f"What {name} said last", listing("\n".join(said))) for name, said in lines.items() if said
    ]
    return {
        "headline": views.headline(room),
        "clock": views.clock(room, now),
        "closing": closing,
        "tickets": titled("Tickets", views.tickets(room)),
        "devices": titled("Device sets", views.device_sets(room)),
        "lanes": titled("Lanes", views.lanes(room, now)),
        "checks": titled("A/A checks", views.checks(room)),
        "log": together(*logs),
    }


def _last_lines(folder: RoundFolder, name: str) -> list[str]:
    return [without_folders(line, [folder.root]) for line in log_tail(folder, name, _LOG_LINES)]
