"""``roundkit pilot``: interventions and blinded reviews."""

from __future__ import annotations

import getpass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from roundkit.cli.app import report_line
from roundkit.cli.manual import Manual
from roundkit.cli.pilot import PilotDir, pilot

if TYPE_CHECKING:
    from roundkit.models.pilot_review import Review
    from roundkit.pilots.packet import Packet

review = Manual(
    help=r"""Review candidates blindly: start, pause, resume, finish. A packet's code tells nothing.

    Examples:
        roundkit pilot review packet ../pilot-01 --all
        roundkit pilot review start ../pilot-01 packet-5f0c91d2 --reviewer ada
        roundkit pilot review finish ../pilot-01 packet-5f0c91d2 --reviewer ada \
            --judgement accept --blinded
    """,
)
pilot.add_typer(review, name="review")

Code = Annotated[str, typer.Argument(metavar="PACKET", help="The packet's code.")]
TupleOrCode = Annotated[
    str,
    typer.Argument(
        metavar="TUPLE|PACKET", help="The tuple, for whoever runs the pilot; else the packet's code."
    ),
]
Reviewer = Annotated[str, typer.Option(help="The reviewer's id, the same from start to finish.")]
Blinded = Annotated[
    bool,
    typer.Option(
        "--blinded/--not-blinded", help="The reviewer's word that nothing told which variant it was."
    ),
]
Note = Annotated[str, typer.Option(help="More about it.")]


_MOST_MINUTES = 525_600.0
"""A year: nobody reviews one candidate for longer."""


class Found(StrEnum):
    """What a reviewer found, by the rubric."""

    ACCEPT = "accept"
    REJECT = "reject"
    UNSURE = "unsure"


Judged = Annotated[Found, typer.Option(help="What was found, by the rubric.")]


def _kinds() -> list[str]:
    from roundkit.models.pilot_review import InterventionKind

    return list(get_args(InterventionKind))


def _kind(value: str) -> str:
    if value not in _kinds():
        raise typer.BadParameter(f"one of {', '.join(_kinds())}")
    return value


@pilot.command()
def intervene(
    pilot_dir: PilotDir,
    tuple_id: Annotated[str, typer.Argument(metavar="TUPLE", help="The tuple whose trial it was.")],
    kind: Annotated[
        str,
        typer.Option(
            callback=_kind,
            help="clarification, environment-repair, permission-granted, restart, stopped-early or other.",
        ),
    ],
    note: Annotated[str, typer.Option(help="What was done; `other` needs it.")] = "",
    by: Annotated[str | None, typer.Option(help="Who did it; without it, this account's name.")] = None,
) -> None:
    r"""Record what a person did to a trial. Several may do so at once; no line is ever changed.

    Examples:
        roundkit pilot intervene ../pilot-01 parser.plain.1 --kind clarification
        roundkit pilot intervene ../pilot-01 parser.plain.1 --kind other \
            --note "unplugged it"
    """
    from roundkit.evidence.pilot_layout import trial_folder
    from roundkit.evidence.pilot_reader import PilotReader
    from roundkit.pilots.interventions import intervene as record
    from roundkit.pilots.interventions import ledger_digest
    from roundkit.pilots.packet import slot_of

    _check(pilot_dir)
    slot = slot_of(PilotReader(pilot_dir).plan(), tuple_id)
    trial = trial_folder(slot.order, slot.tuple_id)
    done = record(
        pilot_dir,
        trial,
        kind=kind,  # type: ignore[arg-type]  # the callback has looked at it
        by=by or getpass.getuser(),
        note=note,
    )
    typer.echo(f"intervention {done.sequence} of {tuple_id}: {done.kind}")
    typer.echo(f"ledger {ledger_digest(pilot_dir, trial)}")


@review.command()
def packet(
    pilot_dir: PilotDir,
    which: Annotated[
        str | None,
        typer.Argument(metavar="[TUPLE|PACKET]", help="Make or show this one; without it, list all by code."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Copy its files into this new folder.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Make the packet of every trial that has a candidate.")
    ] = False,
) -> None:
    """Show what a reviewer gets: by code alone, so that no screen names a tuple.

    Examples:
        # Make all of them, and list their codes
        roundkit pilot review packet ../pilot-01 --all
        # Copy one for somebody elsewhere
        roundkit pilot review packet ../pilot-01 packet-5f0c91d2 --out ../packet
    """
    from roundkit.cli.progress import shown_progress
    from roundkit.pilots.packet import all_packets, copy_packet, make_all
    from roundkit.pilots.review import open_packet, read_state

    _check(pilot_dir)
    if which is not None:
        found = open_packet(pilot_dir, which)
        _show(found)
        for file in copy_packet(found, out) if out is not None else ():
            typer.echo(str(file))
        return
    if out is not None:
        raise typer.BadParameter("it goes with a packet", param_hint="--out")
    if every:
        with shown_progress(stderr=True) as progress:
            problems = make_all(pilot_dir, progress=progress)
        for problem in problems:
            report_line(f"no packet: {problem}")
    packets = all_packets(pilot_dir)
    for each in packets:
        typer.echo(f"{each.code}: {read_state(each).state}")
    if not packets:
        typer.echo("there is no packet yet: roundkit pilot review packet PILOT_DIR --all")


@review.command()
def start(
    pilot_dir: PilotDir,
    which: TupleOrCode,
    reviewer: Reviewer,
) -> None:
    """Begin a review: its packet is written where there is none, and its clock runs from now on.

    Examples:
        roundkit pilot review start ../pilot-01 packet-5f0c91d2 --reviewer ada
    """
    from roundkit.pilots.review import open_packet, start_review

    _check(pilot_dir)
    found = open_packet(pilot_dir, which)
    start_review(found, reviewer)
    _show(found)
    typer.echo(f"the review of {found.code} runs")


@review.command()
def pause(pilot_dir: PilotDir, code: Code) -> None:
    """Begin a break: it does not count as active time.

    Examples:
        roundkit pilot review pause ../pilot-01 packet-5f0c91d2
    """
    _mark(pilot_dir, code, "pause")


@review.command()
def resume(pilot_dir: PilotDir, code: Code) -> None:
    """End a break: active time counts again.

    Examples:
        roundkit pilot review resume ../pilot-01 packet-5f0c91d2
    """
    _mark(pilot_dir, code, "resume")


@review.command()
def finish(
    pilot_dir: PilotDir,
    code: Code,
    reviewer: Reviewer,
    judgement: Judged,
    blinded: Blinded,
    note: Note = "",
    packet_sha256: Annotated[
        str | None, typer.Option(help="Digest of the packet that was reviewed; another one is refused.")
    ] = None,
) -> None:
    r"""End a review; the host's clocks give its active time, or the reason why they do not.

    Examples:
        roundkit pilot review finish ../pilot-01 packet-5f0c91d2 --reviewer ada \
            --judgement accept --blinded
    """
    from roundkit.pilots.packet import find_packet
    from roundkit.pilots.review import finish_review

    _check(pilot_dir)
    done = finish_review(
        find_packet(pilot_dir, code),
        reviewer=reviewer,
        blinded=blinded,
        judgement=judgement.value,
        note=note,
        packet_sha256=packet_sha256,
    )
    _tell(code, done)


@review.command()
def record(
    pilot_dir: PilotDir,
    which: TupleOrCode,
    reviewer: Reviewer,
    minutes: Annotated[
        float, typer.Option(min=0.0, max=_MOST_MINUTES, help="How long it took, as the reviewer says.")
    ],
    judgement: Judged,
    blinded: Blinded,
    note: Note = "",
) -> None:
    r"""Record a review whose duration a person states: readable, and never eligible.

    Examples:
        roundkit pilot review record ../pilot-01 packet-5f0c91d2 --reviewer ada \
            --minutes 25 --judgement reject --not-blinded \
            --note "the file names told it"
    """
    from roundkit.pilots.review import open_packet, record_review

    _check(pilot_dir)
    found = open_packet(pilot_dir, which)
    done = record_review(
        found, reviewer=reviewer, minutes=minutes, blinded=blinded, judgement=judgement.value, note=note
    )
    _tell(found.code, done)


def _check(pilot_dir: Path) -> None:
    from roundkit.pilots.folder import frozen_kind

    frozen_kind(pilot_dir)


def _mark(pilot_dir: Path, code: str, mark: str) -> None:
    from roundkit.pilots.packet import find_packet
    from roundkit.pilots.review import mark_review

    _check(pilot_dir)
    made = mark_review(find_packet(pilot_dir, code), mark)  # type: ignore[arg-type]
    typer.echo(f"{code}: {made.mark}")


def _show(found: Packet) -> None:
    typer.echo(f"{found.code}, SHA-256 {found.sha256}")
    for entry in found.record.files:
        typer.echo(f"  {entry.name}: {entry.size:,} bytes, {entry.sha256}")


def _tell(code: str, done: Review) -> None:
    if done.method == "stated":
        typer.echo(f"{code}: {done.judgement}; its duration was stated, so that it is never eligible")
    elif done.active_ms is None:
        typer.echo(f"{code}: {done.judgement}; no active time: {done.unclear}")
    else:
        typer.echo(f"{code}: {done.judgement}, {done.active_ms:,} ms of active time")
