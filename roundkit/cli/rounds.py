"""The commands of a round, in the order in which an owner meets them."""

from __future__ import annotations

import json
import os
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from roundkit.cli.app import RoundDir, app, report_line
from roundkit.cli.progress import shown_progress
from roundkit.core.errors import refuse

if TYPE_CHECKING:
    from roundkit.models.round_plan import HarnessName, RoundPlan
    from roundkit.rounds.layout import RoundFolder
    from roundkit.rounds.serve import Until


_SECRET_BYTES = 32


class Drive(StrEnum):
    """Which lanes ``launch`` starts."""

    claude = "claude"
    codex = "codex"
    command = "command"
    swarmflow = "swarmflow"
    replay = "replay"
    all = "all"
    none = "none"


class Pool(StrEnum):
    """Who measures."""

    local = "local"
    dask = "dask"
    slurm = "slurm"


PoolOption = Annotated[
    Pool, typer.Option(help="Who measures: this machine, a Dask cluster's workers, or Slurm jobs.")
]
SchedulerOption = Annotated[
    str | None, typer.Option(help="Address of the Dask scheduler, tls://HOST:PORT; with Slurm, to listen on.")
]
SlurmOption = Annotated[
    Path | None, typer.Option(help="YAML file that says how workers are submitted to Slurm.")
]
TlsOption = Annotated[Path | None, typer.Option(help="Folder of certificates, from `cluster cert`.")]


@app.command(rich_help_panel="Rounds")
def prepare(
    campaign: Annotated[Path, typer.Option(help="The campaign plan, campaign.yaml.")],
    round_file: Annotated[Path | None, typer.Option("--round", help="The drafted round, round.yaml.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The round directory to make; outside the repository.")
    ] = None,
    propose: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Only print a draft of at most N lanes."),
    ] = None,
    secret_file: Annotated[
        Path | None, typer.Option(help="32 bytes for coins and seeds; drawn at random when not given.")
    ] = None,
) -> None:
    """Freeze a round plan, or refuse it with every problem at once; print its digest.

    What the round will cost at most is printed before anything is written, and so is advice from the
    campaign's own numbers, which refuses nothing.

    Example: roundkit prepare --campaign campaign.yaml --propose 3 > round.yaml
    """
    from roundkit.cli.tables import advice_table
    from roundkit.rounds.prepare import freeze
    from roundkit.rounds.propose import propose_round
    from roundkit.rules.advice import advise
    from roundkit.rules.forecast import forecast

    if propose is not None:
        if (round_file, out, secret_file) != (None, None, None):
            raise typer.BadParameter("it only prints a draft: give --campaign alone", param_hint="--propose")
        draft = propose_round(campaign, propose, core=max(os.sched_getaffinity(0)))
        typer.echo(draft.decode(), nl=False)
        return
    if round_file is None or out is None:
        raise typer.BadParameter("needed, unless --propose drafts a round", param_hint="--round, --out")

    def announce(plan: RoundPlan) -> None:
        advice_table(advise(plan))
        for line in forecast(plan).lines():
            typer.echo(line)

    secret = _read_secret(secret_file) if secret_file else None
    with shown_progress() as progress:
        plan = freeze(campaign, round_file, out, secret=secret, announce=announce, progress=progress)
    typer.echo(f"round {plan.round_id} frozen at {out}")
    typer.echo(f"digest {plan.digest()}")


def _read_secret(path: Path) -> bytes:
    try:
        secret = path.read_bytes()
    except OSError as error:
        raise refuse(
            "missing-file", f"cannot read {path}: {error.strerror}", place="--secret-file"
        ) from error
    if len(secret) != _SECRET_BYTES:
        remedy = f"make one: head -c {_SECRET_BYTES} /dev/urandom > {path}"
        raise refuse("secret-size", f"{path} has {len(secret)} bytes", place="--secret-file", remedy=remedy)
    return secret


def _drive_name(name: str) -> str:
    if name not in Drive.__members__:
        raise typer.BadParameter(f"nothing here drives {name!r}: name {', '.join(Drive)}")
    return name


@app.command(rich_help_panel="Rounds")
def launch(
    round_dir: RoundDir,
    digest: Annotated[str | None, typer.Option(help="The posted digest; another plan is refused.")] = None,
    drive: Annotated[
        str,
        typer.Option(callback=_drive_name, help=f"Fill lanes of: {', '.join(Drive)}; a person the others."),
    ] = Drive.none,
    with_serve: Annotated[bool, typer.Option(help="Start serve for as long as the drivers run.")] = False,
    engine: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the SwarmFlow engine; without it, whoever runs the script fills them."
        ),
    ] = None,
    round_root: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Make the clones below it, for a team whose tools cannot leave its workspace.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only print what would be started, and in which boundary."),
    ] = False,
) -> None:
    """Make one clone a lane; run again, make only what is missing.

    Exits with 3 when a lane that was to be driven was refused, with 1 when an agent did not come to its end.
    """
    from roundkit.rounds.drive import drive_lanes
    from roundkit.rounds.launch import launch as launch_round
    from roundkit.rounds.serve import round_folder

    folder = round_folder(round_dir)
    harness = None if drive in {Drive.all, Drive.none} else cast("HarnessName", drive)
    if dry_run:
        _show_dry_run(folder, digest, harness)
        return
    with shown_progress() as progress:
        manifest = launch_round(folder, posted_digest=digest, round_root=round_root, progress=progress)
    for lane in manifest.lanes:
        typer.echo(f"{lane.id}: {lane.clone}")
    if drive == Drive.none:
        return
    driven = drive_lanes(folder, harness=harness, with_serve=with_serve, report=report_line, engine=engine)
    if driven.refused or driven.failed:
        raise typer.Exit(3 if driven.refused else 1)


def _show_dry_run(folder: RoundFolder, digest: str | None, harness: HarnessName | None) -> None:
    from roundkit.cli.tables import dry_run_lines
    from roundkit.rounds.drive import dry_run_lanes
    from roundkit.rounds.launch import check_digest
    from roundkit.rounds.layout import read_plan

    check_digest(read_plan(folder), digest, place="--digest")
    for shown in dry_run_lanes(folder, harness):
        for line in dry_run_lines(shown):
            report_line(line)


@app.command(rich_help_panel="Rounds")
def serve(
    round_dir: RoundDir,
    until_idle: Annotated[bool, typer.Option("--until-idle", help="End when nothing waits.")] = False,
    until_deadline: Annotated[
        bool,
        typer.Option("--until-deadline", help="Wait for submissions until the round's deadline (default)."),
    ] = False,
    pool: PoolOption = Pool.local,
    scheduler: SchedulerOption = None,
    tls: TlsOption = None,
    slurm: SlurmOption = None,
) -> None:
    """Measure tickets as they come: the one process that owns the round's queue."""
    from roundkit.rounds.pools import PoolChoice, chosen_pool
    from roundkit.rounds.serve import round_folder
    from roundkit.rounds.serve import serve as serve_round

    if until_idle and until_deadline:
        raise typer.BadParameter("--until-idle and --until-deadline exclude each other")
    until: Until = "idle" if until_idle else "deadline"
    folder, choice = round_folder(round_dir), PoolChoice(pool.value, scheduler, tls, slurm)
    with shown_progress() as progress, chosen_pool(folder, choice) as devices:
        outcome = serve_round(folder, until=until, report=progress.say, pool=devices, progress=progress)
    typer.echo(f"serve ended ({outcome.ended}): {outcome.measured} measured, {outcome.rejected} rejected")
    if outcome.paused is not None:
        typer.echo(
            f"the queue is paused: {outcome.paused}; `roundkit resume` goes on after a passing A/A check"
        )
    if outcome.ended == "paused":
        raise typer.Exit(1)


@app.command(rich_help_panel="Rounds")
def status(
    round_dir: RoundDir,
    ticket: Annotated[str | None, typer.Argument(help="One ticket only.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    watch: Annotated[
        bool, typer.Option(help="Print again at every change, until the round is closed.")
    ] = False,
) -> None:
    """Show the queue, every ticket and why the queue is paused; safe beside a running serve."""
    from roundkit.cli.tables import status_table
    from roundkit.rounds.control import RoundStatus, read_status
    from roundkit.rounds.serve import round_folder
    from roundkit.rules.agent_cost import cost_line

    def show(current: RoundStatus) -> None:
        tickets = [(lane, state) for lane, state in current.tickets if ticket in {None, state.ticket}]
        if ticket is not None and not tickets:
            raise refuse(
                "unknown-ticket", f"the round has no ticket {ticket!r}", remedy="`roundkit status` lists all"
            )
        if as_json:
            document = {
                "round": current.plan.round_id,
                "digest": current.plan.digest(),
                "serve": current.serve,
                "paused": current.paused,
                "waiting": current.waiting,
                "closed": current.closed,
                "aa_checks": {"passed": current.aa_checks[0], "failed": current.aa_checks[1]},
                "attempts": [account.to_json_value() for account in current.accounts],
                "costs": {account.lane.id: cost_line(account) for account in current.accounts},
                "tickets": [{"lane": lane, **state.to_json_value()} for lane, state in tickets],
            }
            typer.echo(json.dumps(document, indent=2))
        else:
            status_table(current, tickets)

    folder = round_folder(round_dir)
    current = read_status(folder)
    show(current)
    while watch and not current.closed:
        time.sleep(1.0)
        latest = read_status(folder)
        if latest != current:
            current = latest
            show(current)


@app.command(rich_help_panel="Control")
def pause(
    round_dir: RoundDir,
    reason: Annotated[str, typer.Option(help="Why; shown by status.")] = "paused by the owner",
) -> None:
    """Pause the queue: intake goes on, nothing new is measured."""
    from roundkit.rounds import control
    from roundkit.rounds.serve import round_folder

    control.pause(round_folder(round_dir), reason)
    typer.echo("paused")


@app.command(rich_help_panel="Control")
def resume(round_dir: RoundDir) -> None:
    """Let a paused queue go on after one new passing A/A check."""
    from roundkit.rounds import control
    from roundkit.rounds.serve import round_folder

    control.resume(round_folder(round_dir))
    typer.echo("the queue goes on once one new A/A check has passed")


@app.command(rich_help_panel="Control")
def drain(round_dir: RoundDir) -> None:
    """End a running serve after what it measures now; everything else stays queued."""
    from roundkit.rounds import control
    from roundkit.rounds.serve import round_folder

    control.drain(round_folder(round_dir))
    typer.echo("serve ends after the running experiments")


@app.command(name="stop-lane", rich_help_panel="Control")
def stop_lane(round_dir: RoundDir, lane: Annotated[str, typer.Argument(help="The lane's id.")]) -> None:
    """End a lane's intake; its accepted tickets are still measured."""
    from roundkit.rounds import control
    from roundkit.rounds.serve import round_folder

    control.stop_lane(round_folder(round_dir), lane)
    typer.echo(f"lane {lane} takes no more submissions")


@app.command(rich_help_panel="Rounds")
def close(
    round_dir: RoundDir,
    pool: PoolOption = Pool.local,
    scheduler: SchedulerOption = None,
    tls: TlsOption = None,
    slurm: SlurmOption = None,
) -> None:
    """Select, compose, rerun, export the evidence and advance the incumbent; resumable."""
    from roundkit.cli.tables import ledger_table
    from roundkit.rounds.close import close as close_round
    from roundkit.rounds.pools import PoolChoice, chosen_pool
    from roundkit.rounds.serve import round_folder

    folder, choice = round_folder(round_dir), PoolChoice(pool.value, scheduler, tls, slurm)
    with shown_progress() as progress, chosen_pool(folder, choice) as devices:
        outcome = close_round(folder, report=progress.say, pool=devices, progress=progress)
    ledger_table(outcome.ledger)
    typer.echo(f"evidence {outcome.evidence}")
    typer.echo(f"index {outcome.index_digest}")
    typer.echo(f"`roundkit prune {round_dir}` leaves plan, ledger and evidence, and frees the rest")


@app.command(rich_help_panel="Rounds")
def prune(round_dir: RoundDir) -> None:
    """Once the evidence of a closed round audits, leave plan, ledger and a pointer to it; remove the rest."""
    from roundkit.audit import audit_round
    from roundkit.rounds.prune import prune as prune_round
    from roundkit.rounds.serve import round_folder

    def problems(evidence: Path, digest: str) -> list[str]:
        checks = audit_round(evidence, expect=digest).checks
        return [f"{check.name}: {check.detail}" for check in checks if not check.passed]

    pointer = prune_round(round_folder(round_dir), audit=problems)
    typer.echo(f"pruned; the evidence stays at {pointer.evidence}, index {pointer.index_sha256}")
