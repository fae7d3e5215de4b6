"""What ``launch.ipynb`` shows: every lane, ready to be filled, and what its drivers do."""

from __future__ import annotations

from pathlib import Path

from roundkit.models.lane import LaunchLane, LaunchManifest
from roundkit.rounds.background import CommandEnded, start_drivers
from roundkit.rounds.control_room import read_room
from roundkit.rounds.launch import launch
from roundkit.rounds.layout import RoundFolder, read_plan, round_folder
from roundkit.widgets import pieces
from roundkit.widgets import room_views as views
from roundkit.widgets.pieces import Piece, Row
from roundkit.widgets.progress import notebook_progress


def launch_lanes(round_dir: str | Path, digest: str = "") -> LaunchManifest:
    """Make every lane ready, or what is missing of them.

    Args:
        round_dir: The round directory.
        digest: The posted digest; empty when none was posted.

    Raises:
        Refused: another plan was posted, the deadline has passed, or the round cannot be launched.
    """
    folder = _folder(round_dir)
    # Before a bar is shown: of a wrong folder its cell shows the sentence alone.
    read_plan(folder)
    with notebook_progress() as progress:
        return launch(folder, posted_digest=digest or None, progress=progress)


def lane_table(round_dir: str | Path, manifest: LaunchManifest) -> Piece:
    """Every lane: who fills it, where the program is imported from, and the command that hands over.

    Paths are relative to the round directory.
    """
    root = _folder(round_dir).root
    rows: list[Row] = [_lane_row(lane, root) for lane in manifest.lanes]
    headings = (
        "lane",
        "entry",
        "plane",
        "filled by",
        "may change",
        "probe",
        "command that hands over",
        "until",
    )
    return pieces.table("Lanes that are ready", headings, rows, empty="The plan has no lane.")


def drive_lanes(round_dir: str | Path, drive: str, *, with_serve: bool = True) -> Piece:
    """Start what fills the lanes and wait for it; the processes go on when the notebook is interrupted.

    Args:
        round_dir: A launched round.
        drive: Which lanes to fill, as ``roundkit launch --drive`` takes it; ``none`` leaves all to people.
        with_serve: Whether to start serve where none runs.

    Raises:
        CommandEnded: the drivers ended with an error, which is the sentence.
    """
    folder = _folder(round_dir)
    if drive == "none":
        return pieces.sentence(
            "No driver was started: the lanes are filled by people, with the commands above."
        )
    if read_room(folder).closing.begun:
        return pieces.sentence("Close has begun: no lane is filled any more.")
    with (
        notebook_progress(lambda: views.tickets(read_room(folder)), [folder.root]) as progress,
        progress.task(f"drive {drive} lanes", None, "tickets with an end") as task,
    ):
        started = start_drivers(folder, drive, with_serve=with_serve)
        for line in started.lines():
            room = read_room(folder)
            task.set(len(room.status.tickets) - room.waiting(), len(room.status.tickets))
            progress.say(line)
    if started.exit_code() != 0:
        raise CommandEnded(started.last_words())
    return pieces.sentence("The drivers have ended.", "good")


def ticket_table(round_dir: str | Path) -> Piece:
    """Every ticket of the round as it stands now."""
    return views.tickets(read_room(_folder(round_dir)))


def launch_sentence(round_dir: str | Path) -> str:
    """Say how many lanes are ready, until when, and how many submissions have an end."""
    room = read_room(_folder(round_dir))
    lanes, tickets = len(room.plan.lanes), len(room.status.tickets)
    ready = f"{lanes} {'lane is' if lanes == 1 else 'lanes are'} ready"
    until = pieces.moment(room.plan.deadline_utc)
    return f"{ready} until {until}; {tickets - room.waiting()} of {tickets} tickets have an end"


def _lane_row(lane: LaunchLane, root: Path) -> Row:
    filled_by = (
        "a person" if lane.harness == "none" else lane.harness + (f" ({lane.model})" if lane.model else "")
    )
    return (
        lane.id,
        lane.entry,
        lane.plane,
        filled_by,
        pieces.joined(map(pieces.code, lane.globs), " "),
        pieces.code(_relative(lane.probe, root)) if lane.probe else "the campaign names no package",
        pieces.code(f"{_relative(lane.wrapper, root)} submit"),
        pieces.moment(lane.deadline_utc),
    )


def _relative(path: str, root: Path) -> str:
    place = Path(path)
    return place.relative_to(root).as_posix() if place.is_relative_to(root) else place.name


def _folder(round_dir: str | Path) -> RoundFolder:
    return round_folder(Path(round_dir))
