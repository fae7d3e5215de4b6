"""``roundkit trial``: what one trial is given, shown to the owner who is setting up."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from roundkit.cli.app import RoundDir, app, report_line

if TYPE_CHECKING:
    from roundkit.models.trial import Side


class TrialSide(StrEnum):
    """The two sides of an experiment."""

    baseline = "baseline"
    candidate = "candidate"


@app.command(rich_help_panel="Rounds")
def trial(
    round_dir: RoundDir,
    side: Annotated[
        TrialSide | None, typer.Option(help="The incumbent (default), or a ticket's candidate.")
    ] = None,
    ticket: Annotated[str | None, typer.Option(help="The candidate.")] = None,
    shell: Annotated[
        bool, typer.Option("--shell", help="Instead of the benchmark, /bin/sh behind the same boundary.")
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(min=1.0, help="Seconds until the shell ends; by default as a trial.")
    ] = None,
) -> None:
    """Run one trial as serve would, and show what the boundary holds.

    Nothing of it is recorded and it decides nothing. It needs a free device set, as any trial.

    Examples:
        roundkit trial ../round-01
        roundkit trial ../round-01 --ticket r01-L1-5f0c2a9b
        # Look around in there
        roundkit trial ../round-01 --shell

    Exit codes:
        0: the trial gave a result
        1: something is wrong with it, or the shell did not end well
    """
    from roundkit.cli.trial_tables import show_shell_end, show_stand, show_trial
    from roundkit.rounds.layout import round_folder
    from roundkit.rounds.try_trial import try_shell, try_trial

    chosen: Side = (side or (TrialSide.candidate if ticket else TrialSide.baseline)).value
    if (chosen == "candidate") != (ticket is not None):
        raise typer.BadParameter("--side candidate and --ticket go together", param_hint="--ticket")
    if timeout is not None and not shell:
        raise typer.BadParameter("it is for --shell; trials have the plan's limit", param_hint="--timeout")
    folder = round_folder(round_dir)
    if shell:
        ended = try_shell(
            folder, side=chosen, ticket=ticket, timeout_s=timeout, report=report_line, before=show_stand
        )
        show_shell_end(ended)
        failed = ended.end_reason != "exited" or ended.exit_code != 0
    else:
        tried = try_trial(folder, side=chosen, ticket=ticket, report=report_line)
        show_trial(tried)
        failed = tried.trial.problem is not None
    if failed:
        raise typer.Exit(1)
