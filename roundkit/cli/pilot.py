"""``roundkit pilot``: frozen pilots, run tuple by tuple and kept whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundkit.cli import pilot_policy
from roundkit.cli.app import app, report_line

if TYPE_CHECKING:
    from roundkit.pilots.kinds import Report

pilot = typer.Typer(
    name="pilot",
    help="Compare ways of working with agents: tasks, variants, repetitions, frozen before the first run.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
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
    """Freeze a pilot: inputs, order, policy, digest; or refuse it with every problem at once."""
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
    """Run the next tuples in the frozen order; run again, go on where it ended. A slot is used once."""
    from roundkit.cli.progress import shown_progress
    from roundkit.pilots.kinds import kind_of_folder

    if only is not None and setup is not None:
        raise typer.BadParameter("it goes without --only", param_hint="--setup")
    with shown_progress() as progress:
        done = kind_of_folder(pilot_dir).run(pilot_dir, only, setup, progress)
    _show(done)


@pilot.command()
def status(pilot_dir: PilotDir) -> None:
    """Show every attempt, what comes next, and why the pilot is blocked; safe beside a run."""
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
    """Decide acceptance again, from archived bytes alone; exit 1 on a disagreement."""
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
