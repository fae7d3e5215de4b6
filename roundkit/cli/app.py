"""The Typer app and what every command shares."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import roundkit
from roundkit.core.text import visible

app = typer.Typer(
    name="roundkit",
    help="Parallel optimization rounds for several coding agents, measured so that a stranger can recompute "
    "every verdict.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
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
            "--version", callback=lambda value: _version(show=value), is_eager=True, help="Show it."
        ),
    ] = False,
) -> None:
    """Register the options that come before any command."""


def report_line(line: str) -> None:
    """Print one line of progress at once."""
    typer.echo(visible(line))


# Help shows the groups of commands in the order in which they are registered.
for _module in (
    "begin",
    "whole",
    "measure",
    "rounds",
    "trial",
    "swarmflow",
    "pilot",
    "pilot_review",
    "waves",
    "evidence",
    "notebooks",
    "frames",
    "cluster",
    "host",
    "devices",
):
    import_module(f"roundkit.cli.{_module}")
