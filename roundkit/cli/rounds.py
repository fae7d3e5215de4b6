"""``roundkit prepare``, ``launch`` and ``serve``: a round until it is closed."""

from __future__ import annotations

import os
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from roundkit.cli import next_steps
from roundkit.cli.app import RoundDir, app, report_line
from roundkit.cli.manual import Interrupted
from roundkit.cli.pool_options import Pool, PoolOption, SchedulerOption, SlurmOption, TlsOption, pool_words
from roundkit.cli.progress import shown_progress
from roundkit.core.errors import refuse
from roundkit.core.inputs import read_input
from roundkit.core.progress import SILENT

if TYPE_CHECKING:
    from roundkit.models.round_plan import HarnessName, RoundPlan
    from roundkit.rounds.layout import RoundFolder
    from roundkit.rounds.serve import Until


_SECRET_BYTES = 32
_LAUNCH_INTERRUPTED = (
    "interrupted: no agent runs any more, and attempts that had begun stay charged; the same command goes on "
    "with the lanes that have attempts left, and with what waits"
)


class Drive(StrEnum):
    """Which lanes ``launch`` starts."""

    claude = "claude"
    codex = "codex"
    command = "command"
    swarmflow = "swarmflow"
    replay = "replay"
    all = "all"
    none = "none"


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

    Examples:
        # In the campaign's folder, a draft from the search plan, to edit
        roundkit prepare --campaign campaign.yaml --propose 3 > round.yaml
        # Freeze it; post the digest that is printed
        roundkit prepare --campaign campaign.yaml --round round.yaml --out ../../r01

    Files:
        ROUND_DIR/round-plan.json: The frozen plan; its SHA-256 is the digest.
    """
    from roundkit.cli.tables import advice_table
    from roundkit.rounds.prepare import freeze
    from roundkit.rounds.prepare_incumbent import advice_on
    from roundkit.rounds.propose import propose_round
    from roundkit.rules.forecast import forecast

    if propose is not None:
        if (round_file, out, secret_file) != (None, None, None):
            raise typer.BadParameter("it only prints a draft: give --campaign alone", param_hint="--propose")
        draft = propose_round(campaign, propose, core=max(os.sched_getaffinity(0)))
        typer.echo(draft.content.decode(), nl=False)
        next_steps.after_draft(campaign, draft, propose)
        return
    if round_file is None or out is None:
        raise typer.BadParameter("needed, unless --propose drafts a round", param_hint="--round, --out")

    def announce(plan: RoundPlan) -> None:
        advice_table(advice_on(plan))
        for line in forecast(plan).lines():
            typer.echo(line)

    secret = _read_secret(secret_file) if secret_file else None
    with shown_progress() as progress:
        plan = freeze(campaign, round_file, out, secret=secret, announce=announce, progress=progress)
    typer.echo(f"round {plan.round_id} frozen at {out}")
    typer.echo(f"digest {plan.digest()}")
    next_steps.after_prepare(out, plan.digest())


def _read_secret(path: Path) -> bytes:
    secret = read_input(path, place="--secret-file")
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

    With --drive, agents then fill the lanes, all at once, each within its budget and its boundary. Agents
    that spend money start only under an authorization in the plan. Ctrl-C ends them; their attempts stay
    charged.

    Examples:
        roundkit launch ../round-01 --digest "$(cat digest.txt)"
        # What would be started, and in which boundary
        roundkit launch ../round-01 --drive claude --dry-run
        roundkit launch ../round-01 --drive all --with-serve

    Exit codes:
        0: the clones are there, and every driven agent came to its end
        1: an agent did not come to its end, or it was interrupted
        3: a plan, a digest or a lane that was to be driven was refused

    Files:
        ROUND_DIR/lanes: The clones, one a lane; a person hands over with .roundkit/round submit.

    Variables:
        The keys that the plan names: Handed to the agents of their lanes, and taken out of all that they
            print.

    Interrupted:
        the clones that are there stay; the same command makes what is missing
    """
    from roundkit.rounds.control import read_status
    from roundkit.rounds.drive import drive_lanes
    from roundkit.rounds.launch import launch as launch_round
    from roundkit.rounds.layout import round_folder

    folder = round_folder(round_dir)
    harness = None if drive in {Drive.all, Drive.none} else cast("HarnessName", drive)
    if dry_run:
        _show_dry_run(folder, digest, harness)
        return
    with shown_progress() as progress:
        manifest = launch_round(folder, posted_digest=digest, round_root=round_root, progress=progress)
    for lane in manifest.lanes:
        typer.echo(f"{lane.id}: {os.path.normpath(lane.clone)}")
    if drive == Drive.none:
        next_steps.after_launch(round_dir, manifest.lanes, read_status(folder))
        return
    # A serve of its own shows its bars in the same terminal: two of them would write over one another.
    with nullcontext() if with_serve else shown_progress() as bars:
        driven = drive_lanes(
            folder,
            harness=harness,
            with_serve=with_serve,
            report=report_line if bars is None else bars.say,
            engine=engine,
            progress=bars or SILENT,
        )
    if driven.interrupted:
        raise Interrupted(_LAUNCH_INTERRUPTED)
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
    """Measure tickets as they come: the one process that owns the round's queue.

    Ctrl-C ends it after the running trials, a second one at once; nothing is lost, and it goes on when it is
    started again.

    Examples:
        # Measure what was submitted, and end
        roundkit serve ../round-01 --until-idle
        # Wait for submissions until the deadline
        roundkit serve ../round-01
        roundkit serve ../round-01 --pool dask --scheduler tls://10.0.0.1:8786

    Exit codes:
        0: nothing waits any more, the deadline has come, or it was drained
        1: the queue is paused, with the reason

    Files:
        ROUND_DIR/store: Queue, verdicts and records; written in transactions.

    Variables:
        ROUNDKIT_LEASE_ROOT: Folder of the leases on this machine's devices.
    """
    from roundkit.rounds.control import read_status
    from roundkit.rounds.layout import round_folder
    from roundkit.rounds.pools import PoolChoice, chosen_pool
    from roundkit.rounds.serve import serve as serve_round

    if until_idle and until_deadline:
        raise typer.BadParameter("--until-idle and --until-deadline exclude each other")
    until: Until = "idle" if until_idle else "deadline"
    folder, choice = round_folder(round_dir), PoolChoice(pool.value, scheduler, tls, slurm)
    devices = chosen_pool(folder, choice)
    with shown_progress() as progress:
        outcome = serve_round(folder, until=until, report=progress.say, pool=devices, progress=progress)
    typer.echo(
        f"serve ended ({outcome.ended}); of the round's tickets {outcome.measured} have a verdict,"
        f" {outcome.rejected} are rejected"
    )
    if outcome.ended == "drained":
        typer.echo("what waits stays queued; the same command goes on with it")
    if outcome.paused is not None:
        typer.echo(
            f"the queue is paused: {outcome.paused}; `roundkit resume` goes on after a passing A/A check"
        )
    if outcome.ended == "paused":
        raise typer.Exit(1)
    next_steps.after_serve(round_dir, read_status(folder), pool_words(pool, scheduler, tls, slurm))
