"""``roundkit pilot``: frozen pilots, run tuple by tuple and kept whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundkit.cli import pilot_policy
from roundkit.cli.app import app, report_line
from roundkit.cli.manual import Manual

if TYPE_CHECKING:
    from roundkit.pilots.kinds import Report

pilot = Manual(
    name="pilot",
    help="""Compare ways of working with agents: tasks, variants, repetitions, frozen before the first run.

    Examples:
        # A small one with scripted agents, from its files to its report
        roundkit pilot example try
        roundkit pilot prepare try/pilot.yaml --out try/pilot
        roundkit pilot run try/pilot
        roundkit pilot audit try/pilot
        roundkit pilot report try/pilot --out pilot.html
    """,
)
app.add_typer(pilot, rich_help_panel="Pilots")

PilotDir = Annotated[Path, typer.Argument(metavar="PILOT_DIR", help="The pilot's folder.")]


@pilot.command()
def prepare(
    pilot_yaml: Annotated[
        Path, typer.Argument(metavar="PILOT_YAML", help="The pilot as its owner wrote it.")
    ],
    out: Annotated[Path, typer.Option(metavar="PILOT_DIR", help="The folder to make.")],
) -> None:
    """Freeze a pilot: inputs, order, policy, digest; or refuse it with every problem at once.

    Examples:
        roundkit pilot prepare pilot.yaml --out ../pilot-01
    """
    from roundkit.cli.progress import shown_progress
    from roundkit.pilots.kinds import kind_of_draft

    with shown_progress() as progress:
        done = kind_of_draft(pilot_yaml).prepare(pilot_yaml, out, progress)
    _show(done)


@pilot.command()
def run(
    pilot_dir: PilotDir,
    only: Annotated[
        str | None,
        typer.Option(metavar="TUPLE", help="Run this one alone; by default all that are left, in order."),
    ] = None,
    setup: Annotated[
        str | None, typer.Option(metavar="TASK.VARIANT", help="Instead, an attempt outside the matrix.")
    ] = None,
) -> None:
    """Run the next tuples in the frozen order; run again, go on where it ended. A slot is used once.

    Ctrl-C ends the running tuple, which is kept as it is; the next run goes on with the one after it.

    Examples:
        roundkit pilot run ../pilot-01
        roundkit pilot run ../pilot-01 --only parser.plain.1
        # Try the setup; it is outside the matrix and counts for nothing
        roundkit pilot run ../pilot-01 --setup parser.plain

    Exit codes:
        0: every tuple that was to run has run, whatever came of it
        1: one could not be run, a run of a policy pilot broke, or it was interrupted

    Interrupted:
        the running tuple is kept as it is; the same command goes on with the one after it
    """
    from roundkit.cli.progress import shown_progress
    from roundkit.pilots.kinds import kind_of_folder

    if only is not None and setup is not None:
        raise typer.BadParameter("it goes without --only", param_hint="--setup")
    with shown_progress() as progress:
        done = kind_of_folder(pilot_dir).run(pilot_dir, only, setup, progress)
    _show(done)


@pilot.command()
def status(pilot_dir: PilotDir) -> None:
    """Show every attempt, what comes next, and why the pilot is blocked; safe beside a run.

    Examples:
        roundkit pilot status ../pilot-01
    """
    from roundkit.pilots.kinds import kind_of_folder

    _show(kind_of_folder(pilot_dir).status(pilot_dir))


@pilot.command()
def replay(
    pilot_dir: PilotDir,
    tuple_id: Annotated[
        str | None, typer.Argument(metavar="[TUPLE]", help="One tuple; by default all.")
    ] = None,
    python: Annotated[
        str | None, typer.Option(help="Interpreter for the checks, where the frozen one is not here.")
    ] = None,
) -> None:
    """Decide acceptance again, from archived bytes alone.

    Examples:
        roundkit pilot replay ../pilot-01
        roundkit pilot replay ../pilot-01 parser.plain.1 --python /usr/bin/python3

    Exit codes:
        0: every replay agrees with its record
        1: one disagrees
    """
    from roundkit.cli.progress import shown_progress
    from roundkit.pilots.folder import PilotFolder, read_plan
    from roundkit.pilots.replay import replay as replay_again

    folder = PilotFolder(pilot_dir.resolve())
    plan = read_plan(folder)
    with shown_progress() as progress:
        replays = replay_again(folder, plan, only=tuple_id, python=python, progress=progress)
    for made in replays:
        agreed = "agrees" if made.agrees else "DISAGREES with its record"
        report_line(f"{made.tuple_id}: {made.acceptance.outcome}, {agreed}")
    if not all(made.agrees for made in replays):
        raise typer.Exit(1)


def _show(report: Report) -> None:
    for line in report.lines:
        report_line(line)
    if report.failed:
        raise typer.Exit(1)


pilot_policy.register(pilot)
