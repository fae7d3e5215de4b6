"""The reviewer's desk: one packet under its code, its clock, rubric and diff; no label, no tuple."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from roundkit.core.errors import Refused, RoundkitError, refuse
from roundkit.core.resources import near
from roundkit.pilots.folder import frozen_kind
from roundkit.pilots.packet import DIFF, RUBRIC, Packet, all_packets, find_packet
from roundkit.pilots.review import ReviewState, finish_review, mark_review, read_state, start_review
from roundkit.widgets.actions import refusal_sentences
from roundkit.widgets.diff_view import diff_view
from roundkit.widgets.pieces import Piece, code, facts, listing, sentence, styled, table, titled, together

_JUDGEMENTS = ("accept", "reject", "unsure")
_WORDS = {
    "not-started": "Not started. Rubric and diff appear with Start, and the clock runs from then on.",
    "running": "The clock runs.",
    "paused": "Paused: the clock stands still.",
    "finished": "Finished.",
}


def packet_table(pilot: str | Path) -> Piece:
    """Return every packet of a pilot by its code, with how its review stands.

    Raises:
        Refused: ``no-pilot``.
    """
    folder = _folder(pilot)
    rows = [(code(packet.code), read_state(packet).state) for packet in all_packets(folder)]
    empty = "There is no packet yet: roundkit pilot review packet PILOT_DIR --all"
    return table("Packets", ("packet", "review"), rows, empty=empty)


class ReviewDesk:
    """One packet with its buttons. Nothing of it is kept in the kernel: a new one finds the review as it is.

    Args:
        pilot: The pilot's folder.
        code_: The packet's code; empty shows only how to choose one.
        reviewer: The reviewer's id.

    Raises:
        Refused: ``no-pilot``, ``no-packet``, ``stale-packet``.
    """

    def __init__(self, pilot: str | Path, code_: str, reviewer: str) -> None:
        self._pilot = _folder(pilot)
        self._code = code_
        self._reviewer = reviewer
        if code_:
            find_packet(self._pilot, code_)
        self._status, self._answer = widgets.HTML(), widgets.HTML()
        self._sections = {name: widgets.HTML() for name in ("rubric", "diff")}
        self._judgement = widgets.Dropdown(options=[("choose…", ""), *((each, each) for each in _JUDGEMENTS)])
        self._blinded = widgets.Checkbox(description="Nothing told me which variant it was", indent=False)
        self._note = widgets.Textarea(placeholder="What you found, by the rubric")
        self._buttons = {
            "Start": self._button("Start", "Show rubric and diff, and let the clock run", self._start),
            "Pause": self._button(
                "Pause", "Begin a break, which does not count", lambda: self._mark("pause")
            ),
            "Resume": self._button("Resume", "End the break", lambda: self._mark("resume")),
            "Finish": self._button("Finish", "End the review for good", self._finish),
        }
        self.widget = self._laid_out()
        self._look()

    def snapshot(self) -> Piece:
        """Return everything that it shows now, for whoever sees no widgets."""
        if not self._code:
            return sentence("Give a packet's code as `packet`, and your id as `reviewer`.")
        packet = self._packet()
        state = read_state(packet)
        return together(_headline(packet, state), *_material(packet, state).values())

    def sentence(self) -> str:
        """Say how the review stands."""
        return f"{self._code}: {read_state(self._packet()).state}" if self._code else "no packet was chosen"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        now = self.snapshot()
        bundle = {"text/html": styled(now.markup), "text/plain": now.text}
        if not self._code:
            return bundle
        shown: dict[str, Any] = dict(self.widget._repr_mimebundle_(**options) or {})
        return {**shown, **bundle}

    def _packet(self) -> Packet:
        return find_packet(self._pilot, self._code)

    def _laid_out(self) -> widgets.VBox:
        row = widgets.HBox(
            list(self._buttons.values()), layout=widgets.Layout(flex_flow="row wrap", align_items="center")
        )
        row.add_class("rk-buttons")
        self._judgement.description = "Judgement"
        self._judgement.style = {"description_width": "initial"}
        self._judgement.layout.width = "auto"
        self._note.layout.width = "min(40em, 95%)"
        ending = widgets.VBox([self._judgement, self._blinded, self._note])
        ending.add_class("rk-buttons")
        return widgets.VBox([self._status, row, self._answer, *self._sections.values(), ending])

    def _button(self, label: str, tooltip: str, act: Callable[[], str]) -> widgets.Button:
        button = widgets.Button(description=label, tooltip=tooltip, layout=widgets.Layout(width="auto"))
        button.on_click(lambda _: self._do(label, act))
        return button

    def _do(self, label: str, act: Callable[[], str]) -> None:
        try:
            said = sentence(f"{label}: {act()}", "good")
        except Refused as refused:
            said = refusal_sentences(f"{label}: refused.", refused)
        except (RoundkitError, OSError) as error:
            said = sentence(f"{label}: {error}", "bad")
        self._answer.value = styled(said.markup)
        self._look()

    def _start(self) -> str:
        self._require_reviewer()
        start_review(self._packet(), self._reviewer)
        return "the clock runs."

    def _mark(self, mark: str) -> str:
        mark_review(self._packet(), mark)  # type: ignore[arg-type]
        return "the clock stands still." if mark == "pause" else "the clock runs on."

    def _finish(self) -> str:
        self._require_reviewer()
        if not self._judgement.value:
            raise refuse("no-judgement", "no judgement was chosen", place="Judgement", remedy="choose one")
        done = finish_review(
            self._packet(),
            reviewer=self._reviewer,
            blinded=bool(self._blinded.value),
            judgement=self._judgement.value,
            note=str(self._note.value),
        )
        return _ended(done.active_ms, done.unclear)

    def _require_reviewer(self) -> None:
        if not self._reviewer:
            raise refuse(
                "no-reviewer", "nobody is named as reviewer", place="reviewer", remedy="give your id"
            )

    def _look(self) -> None:
        if not self._code:
            return
        packet = self._packet()
        state = read_state(packet)
        self._status.value = styled(_headline(packet, state).markup)
        for name, piece in _material(packet, state).items():
            self._sections[name].value = styled(piece.markup)
        able = {
            "Start": state.state == "not-started",
            "Pause": state.state == "running",
            "Resume": state.state == "paused",
            "Finish": state.state in {"running", "paused"},
        }
        for label, button in self._buttons.items():
            button.disabled = not able[label]


def review_desk(pilot: str | Path, packet: str, reviewer: str) -> ReviewDesk:
    """Return the desk for one packet; it finds a review that was begun already.

    Raises:
        Refused: ``no-pilot``, ``no-packet``, ``stale-packet``.
    """
    return ReviewDesk(pilot, packet, reviewer)


def _folder(pilot: str | Path) -> Path:
    found = near(pilot)
    if found is None:
        raise refuse(
            "no-pilot",
            f"there is no folder {Path(pilot).name!r}",
            place="pilot",
            remedy="give the folder that `roundkit pilot prepare` made, which holds plan.json",
        )
    frozen_kind(found)
    return found


def _headline(packet: Packet, state: ReviewState) -> Piece:
    rows = [("packet", code(packet.code)), ("SHA-256", code(packet.sha256))]
    if state.session is not None:
        rows.append(("reviewer", state.session.reviewer))  # type: ignore[arg-type]
    said = _WORDS[state.state]
    if state.review is not None:
        said = f"{said} {_ended(state.review.active_ms, state.review.unclear)}"
    return together(facts(rows), sentence(said, "good" if state.state == "running" else "note"))


def _material(packet: Packet, state: ReviewState) -> dict[str, Piece]:
    """Return rubric and diff; nothing before the clock runs."""
    if state.session is None and state.review is None:
        return {}
    rubric = packet.read(RUBRIC).decode("utf-8", "replace")
    return {
        "rubric": titled("Rubric", listing(rubric)),
        "diff": titled("What the candidate changes", diff_view(packet.read(DIFF))),
    }


def _ended(active_ms: int | None, unclear: str | None) -> str:
    if active_ms is None:
        return f"No active time: {unclear}."
    return f"{active_ms / 1000:,.1f} s of active time."
