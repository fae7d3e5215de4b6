"""Commands on pilots: a frozen design, every run of it kept, an audit and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roundkit.cli import pilot_policy
from roundkit.cli.app import app

pilot = typer.Typer(
    help="Pilots: a frozen design, run by roundkit, audited and reported.", no_args_is_help=True
)
app.add_typer(pilot, name="pilot", rich_help_panel="Pilots")

PilotDir = Annotated[Path, typer.Argument(metavar="PILOT_DIR", help="The pilot's folder.")]


@pilot.command()
def prepare(
    pilot_file: Annotated[Path, typer.Argument(metavar="PILOT_YAML", help="The pilot.")],
    out: Annotated[Path, typer.Option(help="The pilot's folder to make.")],
) -> None:
    """Freeze a pilot, or refuse it with every problem at once; print its digest."""
    pilot_policy.prepare(pilot_file, out)


@pilot.command()
def run(
    pilot_dir: PilotDir,
    only: Annotated[str | None, typer.Option(help="One run alone, e.g. P.2.")] = None,
) -> None:
    """Run what is left of a pilot, in its frozen order; killed at any moment, the next run goes on."""
    pilot_policy.run(pilot_dir, only)


@pilot.command()
def audit(
    pilot_dir: PilotDir,
    expect: Annotated[str | None, typer.Option(help="The digest that was published elsewhere.")] = None,
) -> None:
    """Recompute everything of a pilot from its evidence; exit 1 on any disagreement."""
    pilot_policy.audit(pilot_dir, expect)


@pilot.command()
def report(pilot_dir: PilotDir, out: Annotated[Path, typer.Option(help="The HTML file to write.")]) -> None:
    """Write one self-contained, offline HTML file about a pilot."""
    pilot_policy.report(pilot_dir, out)


pilot_policy.register(pilot)
