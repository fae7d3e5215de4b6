"""What ``close.ipynb`` shows: each composition step as it is measured, and what was decided."""

from __future__ import annotations

from pathlib import Path

from roundkit.models.ledger import RoundLedger
from roundkit.rounds.close import CloseOutcome, close
from roundkit.rounds.control_room import read_room
from roundkit.rounds.layout import RoundFolder, round_folder
from roundkit.rounds.serve import ServeOutcome, serve
from roundkit.widgets import pieces
from roundkit.widgets import room_views as views
from roundkit.widgets.pieces import Piece, Row
from roundkit.widgets.progress import notebook_progress


def measure_waiting(round_dir: str | Path, *, wanted: bool) -> Piece:
    """Measure what still waits, where that is wanted and the round is not being closed already.

    Args:
        round_dir: The round directory.
        wanted: Whether to.

    Raises:
        Refused: serve or close runs elsewhere.
    """
    folder = _folder(round_dir)
    room = read_room(folder)
    if not wanted or room.closing.begun:
        return views.tickets(room)
    with notebook_progress(lambda: views.tickets(read_room(folder))) as progress:
        outcome = serve(folder, until="idle", report=progress.say, progress=progress)
    return pieces.sentence(_ended(outcome), "bad" if outcome.paused else "good")


def close_round(round_dir: str | Path) -> CloseOutcome:
    """Close the round, showing each step as it is measured. Run again, it repeats no measurement.

    Raises:
        Refused: tickets wait, serve or close runs elsewhere, or the campaign cannot take the results.
        CloseStopped: it was interrupted, or the host has to be mended first; run it again.
    """
    folder = _folder(round_dir)
    home = Path(read_room(folder).plan.campaign_path).parent
    with notebook_progress(lambda: views.composition(read_room(folder).closing), [home]) as progress:
        return close(folder, report=progress.say, progress=progress)


def decision_table(ledger: RoundLedger) -> Piece:
    """What became of every lane."""
    rows: list[Row] = [
        (
            lane.lane,
            lane.entry,
            pieces.code(lane.selected) if lane.selected else None,
            pieces.percent(lane.ticket_gain),
            lane.outcome,
            lane.sentence,
        )
        for lane in ledger.lanes
    ]
    headings = ("lane", "entry", "selected ticket", "#ticket estimate", "outcome", "~why")
    return pieces.table("What was decided about each lane", headings, rows, empty="The plan has no lane.")


def decision_sentence(ledger: RoundLedger) -> str:
    """Say what the round decided, in words and its one number."""
    if not ledger.advanced:
        return f"The incumbent stays. {ledger.statement}"
    return f"The incumbent advances; a fresh rerun gives {pieces.percent(ledger.gain)}. {ledger.statement}"


def evidence_facts(outcome: CloseOutcome) -> Piece:
    """Where the evidence lies, beside the campaign file, and the digest to publish."""
    ledger = outcome.ledger
    place = f"evidence/{ledger.campaign_id}/rounds/{ledger.round_id}"
    return pieces.facts(
        [
            ("evidence, beside campaign.yaml", pieces.code(place)),
            ("index digest to publish", pieces.code(outcome.index_digest)),
            ("new incumbent", pieces.code(outcome.new_incumbent) if outcome.new_incumbent else "none"),
        ]
    )


def _ended(outcome: ServeOutcome) -> str:
    counts = f"{outcome.measured} tickets with a verdict, {outcome.rejected} rejected"
    paused = f"; the queue is paused: {outcome.paused}" if outcome.paused else ""
    return f"Serve ended ({outcome.ended}): {counts}{paused}."


def _folder(round_dir: str | Path) -> RoundFolder:
    return round_folder(Path(round_dir))
