"""The Typer app and what every command shares."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import roundkit
from roundkit.cli.completion import complete_at_once
from roundkit.cli.manual import Manual
from roundkit.core.text import visible

complete_at_once()
app = Manual(
    name="roundkit",
    help="""Parallel optimization rounds for several coding agents, measured so that a stranger can recompute
    every verdict.

    Examples:
        # Can this machine hold candidates, and what is missing?
        roundkit doctor
        # A whole round on a small program, to an HTML report: some minutes
        roundkit demo --out demo
        # Begin in your own repository
        roundkit init --benchmark "python3 bench.py"
        # Everything about one command
        roundkit measure --help
    """,
)

RoundDir = Annotated[Path, typer.Argument(metavar="ROUND_DIR", help="The round directory.")]


def _version(*, show: bool) -> None:
    if show:
        typer.echo(f"roundkit {roundkit.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=lambda value: _version(show=value), is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Register the options that come before any command."""


def report_line(line: str) -> None:
    """Print one line of progress at once."""
    typer.echo(visible(line))


# Help shows the groups of commands in the order in which they are registered.
for _module in (
    "init",
    "whole_rounds",
    "measure",
    "rounds",
    "status",
    "control",
    "closing",
    "trial",
    "swarmflow",
    "pilot",
    "pilot_review",
    "pilot_report",
    "waves",
    "evidence",
    "notebooks",
    "frames",
    "cluster",
    "host",
    "devices",
    "explain",
):
    import_module(f"roundkit.cli.{_module}")
