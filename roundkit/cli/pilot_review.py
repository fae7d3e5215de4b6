"""``roundkit pilot``: interventions, blinded reviews, audit and report."""

from __future__ import annotations

import getpass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from roundkit.cli.app import report_line
from roundkit.cli.pilot import PilotDir, pilot

if TYPE_CHECKING:
    from roundkit.models.pilot_review import Review
    from roundkit.pilots.packet import Packet

review = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Review candidates blindly: start, pause, resume, finish. A packet's code tells nothing.",
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
    """Record what a person did to a trial. Several may do so at once; no line is ever changed."""
    from roundkit.evidence.pilot_layout import trial_folder
    from roundkit.evidence.pilot_reader import PilotReader
    from roundkit.pilots.interventions import intervene as record
    from roundkit.pilots.packet import slot_of

    slot = slot_of(PilotReader(pilot_dir).plan(), tuple_id)
    done = record(
        pilot_dir,
        trial_folder(slot.order, slot.tuple_id),
        kind=kind,  # type: ignore[arg-type]  # the callback has looked at it
        by=by or getpass.getuser(),
        note=note,
    )
    typer.echo(f"intervention {done.sequence} of {tuple_id}: {done.kind}")


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
    """Show what a reviewer gets: by code alone, so that no screen names a tuple."""
    from roundkit.pilots.packet import all_packets, copy_packet, make_all
    from roundkit.pilots.review import open_packet, read_state

    if which is not None:
        found = open_packet(pilot_dir, which)
        _show(found)
        for file in copy_packet(found, out) if out is not None else ():
            typer.echo(str(file))
        return
    if out is not None:
        raise typer.BadParameter("it goes with a packet", param_hint="--out")
    for problem in make_all(pilot_dir) if every else ():
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
    """Begin a review: its packet is written where there is none, and its clock runs from now on."""
    from roundkit.pilots.review import open_packet, start_review

    found = open_packet(pilot_dir, which)
    start_review(found, reviewer)
    _show(found)
    typer.echo(f"the review of {found.code} runs")


@review.command()
def pause(pilot_dir: PilotDir, code: Code) -> None:
    """Begin a break: it does not count as active time."""
    _mark(pilot_dir, code, "pause")


@review.command()
def resume(pilot_dir: PilotDir, code: Code) -> None:
    """End a break."""
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
    """End a review; the host's clocks give its active time, or the reason why they do not."""
    from roundkit.pilots.packet import find_packet
    from roundkit.pilots.review import finish_review

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
    """Record a review whose duration a person states: readable, and never eligible."""
    from roundkit.pilots.review import open_packet, record_review

    found = open_packet(pilot_dir, which)
    done = record_review(
        found, reviewer=reviewer, minutes=minutes, blinded=blinded, judgement=judgement.value, note=note
    )
    _tell(found.code, done)


@pilot.command()
def audit(
    pilot_dir: Annotated[list[Path], typer.Argument(metavar="PILOT_DIR...", help="Folders of pilots.")],
    expect: Annotated[str | None, typer.Option(help="The digest that was published elsewhere.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Recompute everything of a pilot from its bytes; exit 1 on any disagreement."""
    import json

    from roundkit.audit import audit_pilot, render
    from roundkit.audit.policy import audit_policy
    from roundkit.evidence.pilot_kind import pilot_kind

    reports = [
        (audit_policy if pilot_kind(path) == "policy" else audit_pilot)(path, expect=expect)
        for path in pilot_dir
    ]
    if as_json:
        typer.echo(json.dumps([done.to_json_value() for done in reports], indent=2))
    else:
        for done in reports:
            render(done)
    if not all(done.passed for done in reports):
        raise typer.Exit(1)


@pilot.command()
def report(
    pilot_dir: PilotDir,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")],
) -> None:
    """Write one self-contained, offline HTML file about a pilot; provisional while tuples are missing."""
    from roundkit.cli.progress import shown_progress
    from roundkit.evidence.pilot_kind import pilot_kind
    from roundkit.report import build_pilot_report
    from roundkit.report.policy_run import build_policy_report

    build = build_policy_report if pilot_kind(pilot_dir) == "policy" else build_pilot_report
    with shown_progress() as progress:
        build(pilot_dir, out, progress=progress)
    typer.echo(str(out))


def _mark(pilot_dir: Path, code: str, mark: str) -> None:
    from roundkit.pilots.packet import find_packet
    from roundkit.pilots.review import mark_review

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
