"""``roundkit swarmflow``: the script of a round, for whoever runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roundkit.cli.app import RoundDir, app


@app.command(rich_help_panel="Rounds")
def swarmflow(
    round_dir: RoundDir,
    hand_over: Annotated[
        Path | None,
        typer.Option(help="Write it there and claim one attempt a lane, at the engine's number of tries."),
    ] = None,
) -> None:
    """Print the SwarmFlow script of a round's lanes; linted, and for launch.json as its args.

    Examples:
        roundkit swarmflow ../round-01 > script.py
        # For an engine that somebody else runs: claim one attempt a lane
        roundkit swarmflow ../round-01 --hand-over script.py
    """
    from roundkit.rounds.layout import round_folder
    from roundkit.rounds.swarmflow import hand_over as hand_over_script
    from roundkit.rounds.swarmflow import render_round, swarm_round

    swarm = swarm_round(round_folder(round_dir))
    if hand_over is None:
        typer.echo(render_round(swarm), nl=False)
        return
    for binding in hand_over_script(swarm, hand_over):
        typer.echo(f"{binding.lane}: attempt {binding.ordinal} claimed, at {binding.tries} tries")
