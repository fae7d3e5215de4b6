"""``roundkit pause``, ``resume``, ``drain`` and ``stop-lane``: what an owner tells a running round."""

from __future__ import annotations

from typing import Annotated

import typer

from roundkit.cli.app import RoundDir, app


@app.command(rich_help_panel="Control")
def pause(
    round_dir: RoundDir,
    reason: Annotated[str, typer.Option(help="Why; shown by status.")] = "paused by the owner",
) -> None:
    """Pause the queue: intake goes on, nothing new is measured.

    Examples:
        roundkit pause ../round-01 --reason "the machine is needed until noon"
    """
    from roundkit.rounds import control
    from roundkit.rounds.layout import round_folder

    control.pause(round_folder(round_dir), reason)
    typer.echo("paused")


@app.command(rich_help_panel="Control")
def resume(round_dir: RoundDir) -> None:
    """Let a paused queue go on after one new passing A/A check.

    Examples:
        roundkit resume ../round-01
    """
    from roundkit.rounds import control
    from roundkit.rounds.layout import round_folder

    control.resume(round_folder(round_dir))
    typer.echo("the queue goes on once one new A/A check has passed")


@app.command(rich_help_panel="Control")
def drain(round_dir: RoundDir) -> None:
    """End a running serve after what it measures now; everything else stays queued.

    Examples:
        roundkit drain ../round-01
    """
    from roundkit.rounds import control
    from roundkit.rounds.layout import round_folder

    control.drain(round_folder(round_dir))
    typer.echo("serve ends after the running experiments")


@app.command(name="stop-lane", rich_help_panel="Control")
def stop_lane(
    round_dir: RoundDir, lane: Annotated[str, typer.Argument(metavar="LANE", help="The lane's id.")]
) -> None:
    """End a lane's intake; its accepted tickets are still measured.

    Examples:
        roundkit stop-lane ../round-01 L3
    """
    from roundkit.rounds import control
    from roundkit.rounds.layout import round_folder

    control.stop_lane(round_folder(round_dir), lane)
    typer.echo(f"lane {lane} takes no more submissions")
