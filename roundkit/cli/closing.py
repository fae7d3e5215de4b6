"""``roundkit close`` and ``prune``: a round's end, and what stays of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundkit.cli import next_steps
from roundkit.cli.app import RoundDir, app
from roundkit.cli.options import somebody
from roundkit.cli.pool_options import Pool, PoolOption, SchedulerOption, SlurmOption, TlsOption
from roundkit.cli.progress import shown_progress
from roundkit.core.clock import is_expired, now_utc

if TYPE_CHECKING:
    from roundkit.rounds.layout import RoundFolder


@app.command(rich_help_panel="Rounds")
def close(
    round_dir: RoundDir,
    pool: PoolOption = Pool.local,
    scheduler: SchedulerOption = None,
    tls: TlsOption = None,
    slurm: SlurmOption = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing, not even where nothing was ever handed over.")
    ] = False,
) -> None:
    """Select, compose, rerun, export the evidence and advance the incumbent; resumable.

    The lanes whose tickets passed are laid on one another, largest gain first, each step measured; the
    result is measured once more against the incumbent. Killed or interrupted at any moment, it goes on where
    it was. Who ends a round before its deadline that nobody has handed anything over in is asked first, at a
    terminal.

    Examples:
        roundkit close ../round-01
        roundkit close ../round-01 --pool dask --scheduler tls://10.0.0.1:8786

    Exit codes:
        0: the round is closed, whatever it decided
        1: it cannot go on now, or it was interrupted; the same command goes on
        3: tickets still wait, or something was changed behind its back

    Files:
        evidence: Beside campaign.yaml; what an audit and a report need.
        campaign.yaml: Its search state moves on; comments stay.
    """
    from roundkit.cli.tables import ledger_table
    from roundkit.rounds.close import close as close_round
    from roundkit.rounds.layout import round_folder
    from roundkit.rounds.pools import PoolChoice, chosen_pool

    folder, choice = round_folder(round_dir), PoolChoice(pool.value, scheduler, tls, slurm)
    devices = chosen_pool(folder, choice)
    if not yes and somebody() and _is_untouched(folder):
        typer.confirm(
            "Nothing was ever handed over, and the deadline is yet to come. End the round?", abort=True
        )
    with shown_progress() as progress:
        outcome = close_round(folder, report=progress.say, pool=devices, progress=progress)
    ledger_table(outcome.ledger)
    typer.echo(f"evidence {outcome.evidence}")
    typer.echo(f"index {outcome.index_digest}")
    typer.echo(f"`roundkit prune {round_dir}` leaves plan, ledger and evidence, and frees the rest")
    next_steps.after_close(round_dir, outcome)


def _is_untouched(folder: RoundFolder) -> bool:
    from roundkit.rounds.control import read_status

    status = read_status(folder)
    over = status.closing.begun or is_expired(status.plan.deadline_utc, now_utc())
    return not (over or status.tickets or status.handed_over)


@app.command(rich_help_panel="Rounds")
def prune(round_dir: RoundDir) -> None:
    """Once the evidence of a closed round audits, leave plan, ledger and a pointer to it; remove the rest.

    Examples:
        roundkit prune ../round-01
    """
    from roundkit.audit import audit_round
    from roundkit.rounds.layout import round_folder
    from roundkit.rounds.prune import prune as prune_round

    with shown_progress() as progress:

        def problems(evidence: Path, digest: str) -> list[str]:
            checks = audit_round(evidence, expect=digest, progress=progress).checks
            return [f"{check.name}: {check.detail}" for check in checks if not check.passed]

        pointer = prune_round(round_folder(round_dir), audit=problems)
    typer.echo(f"pruned; the evidence stays at {pointer.evidence}, index {pointer.index_sha256}")
