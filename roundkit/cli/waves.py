"""The commands of an unattended campaign of waves."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundkit.cli.app import app, report_line
from roundkit.cli.manual import Manual
from roundkit.cli.progress import shown_progress

if TYPE_CHECKING:
    from roundkit.waves.status import CampaignStatus

waves = Manual(
    help="""Thousands of small targets, drafted by many agents and gated in waves, unattended.

    Examples:
        # C functions drafted by scripts, with your own compiler
        roundkit waves example ../waves-c --targets 40
        roundkit waves run ../waves-c/wave-plan.yaml --dir ../waves-c/campaign
        roundkit waves report ../waves-c/campaign --out waves.html
    """,
)
app.add_typer(waves, name="waves", rich_help_panel="Waves")

WaveDir = Annotated[Path, typer.Argument(metavar="WAVE_DIR", help="The campaign's folder.")]
UnderRun = Annotated[bool, typer.Option("--under-run", hidden=True)]

_WATCH_S = 1.0


@waves.command()
def run(
    plan: Annotated[Path, typer.Argument(metavar="WAVE_PLAN", help="The campaign, wave-plan.yaml.")],
    directory: Annotated[
        Path, typer.Option("--dir", metavar="WAVE_DIR", help="Its folder; outside the tree.")
    ],
) -> None:
    """Freeze the campaign at its first start, then run drafter and gater until both have ended.

    They are two processes. When one dies the other goes on, and a line says how to start it again. Ctrl-C
    asks both to end after their current step. The same command goes on with a campaign that was stopped.

    Examples:
        roundkit waves run wave-plan.yaml --dir ../campaign-1

    Exit codes:
        0: both halves came to their end, or were asked to stop
        1: one of them failed; a line says which, and how to start it again
    """
    from roundkit.waves.freeze import freeze
    from roundkit.waves.run import run_both

    folder = freeze(plan, directory)
    typer.echo(f"campaign {folder.plan.plan.campaign_id} at {folder.root}")
    typer.echo(f"digest {folder.plan_sha256}")
    code = run_both(folder, say=report_line)
    if code:
        raise typer.Exit(code)


@waves.command()
def draft(wave_dir: WaveDir, under_run: UnderRun = False) -> None:
    """Draw waves and have them drafted; waits for nobody but where the gater is too far behind.

    Examples:
        roundkit waves draft ../campaign-1

    Exit codes:
        0: the campaign has come to its end, or was asked to stop
        1: the campaign's draw kept failing, or no agent of a wave could be started
    """
    from roundkit.waves import stop
    from roundkit.waves.banked import banked_keys
    from roundkit.waves.drafter import run_drafter
    from roundkit.waves.folder import open_campaign

    folder = open_campaign(wave_dir)
    if not under_run:
        stop.lift(folder)
    campaign_id = folder.plan.plan.campaign_id
    with shown_progress() as progress:
        code = run_drafter(wave_dir, banked=lambda tree: banked_keys(tree, campaign_id), progress=progress)
    if code:
        raise typer.Exit(code)


@waves.command()
def gate(
    wave_dir: WaveDir,
    only: Annotated[
        str | None,
        typer.Option(metavar="TAG", help="Gate the drafts of one wave that lie there now, and end."),
    ] = None,
    parked: Annotated[
        bool, typer.Option("--parked", help="Gate the drafts that were put aside, and end.")
    ] = False,
    under_run: UnderRun = False,
) -> None:
    """Gate what was drafted and commit what is right; may be killed and started again at any moment.

    Examples:
        roundkit waves gate ../campaign-1
        # One wave whose drafts lie there
        roundkit waves gate ../campaign-1 --only 0007

    Exit codes:
        0: everything that was drafted is gated, or it was asked to stop
        1: --only or --parked ended with drafts that no gate answered for, or something broke
        3: refused, with the reason and what would help; nothing of it is lost, and the wave waits
    """
    from roundkit.waves import stop
    from roundkit.waves.folder import open_campaign
    from roundkit.waves.gater import run_gater

    if not under_run:
        stop.lift(open_campaign(wave_dir))
    with shown_progress() as progress:
        code = run_gater(wave_dir, only=only, parked=parked, progress=progress)
    if code:
        raise typer.Exit(code)


@waves.command()
def status(
    wave_dir: WaveDir,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    watch: Annotated[
        bool, typer.Option(help="Print again at every change, until both halves ended.")
    ] = False,
) -> None:
    """Show every wave, the queue, the workers and how busy the fleet was; safe beside both halves.

    Examples:
        roundkit waves status ../campaign-1 --watch

    Interrupted:
        the campaign goes on as it was
    """
    from roundkit.waves.folder import open_campaign
    from roundkit.waves.status import read_status

    folder = open_campaign(wave_dir)
    shown: Any = None
    while True:
        current = read_status(folder)
        # The fleet's seconds go on by themselves; they are no change.
        if (changed := _json_status(current) | {"fleet": None}) != shown:
            shown = changed
            _show(current, as_json=as_json)
        if not watch or not (current.drafter_runs or current.gater_runs):
            return
        time.sleep(_WATCH_S)


@waves.command(name="stop")
def stop_command(wave_dir: WaveDir) -> None:
    """Ask both halves to end after their current step; everything stays resumable.

    Examples:
        roundkit waves stop ../campaign-1
    """
    from roundkit.waves import stop
    from roundkit.waves.folder import open_campaign

    stop.ask(open_campaign(wave_dir, changed_too=True))
    typer.echo("both halves end after their current step; `roundkit waves run` goes on from there")


@waves.command()
def example(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")],
    targets: Annotated[int, typer.Option(min=5, help="How many C functions.")] = 200,
) -> None:
    """Make an example campaign of small C functions, drafted by scripts: it costs nothing.

    It takes a C compiler. `roundkit waves run DIR/wave-plan.yaml --dir WAVE_DIR` runs it.

    Examples:
        roundkit waves example ../waves-c --targets 40
    """
    from roundkit.waves.example import make_example

    with shown_progress() as progress:
        make_example(directory, targets, progress=progress)
    typer.echo(f"{targets} functions in {directory}")
    typer.echo(f"roundkit waves run {directory / 'wave-plan.yaml'} --dir {directory / 'campaign'}")


@waves.command()
def report(
    wave_dir: WaveDir,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")],
) -> None:
    """Write one self-contained, offline HTML file about a campaign, as far as it has come.

    Examples:
        roundkit waves report ../campaign-1 --out waves.html
    """
    from roundkit.report import build_waves_report

    with shown_progress() as progress:
        build_waves_report(wave_dir, out, progress=progress)
    typer.echo(str(out))


@waves.command()
def export(
    wave_dir: WaveDir,
    out: Annotated[Path, typer.Option(help="The folder to make; it must not exist.")],
) -> None:
    """Copy a campaign's records, without drafts and logs; report and notebook read such a copy too.

    Examples:
        roundkit waves export ../campaign-1 --out published/waves
    """
    from roundkit.waves.export import export_campaign
    from roundkit.waves.folder import open_campaign

    with shown_progress() as progress:
        files = export_campaign(open_campaign(wave_dir), out, progress=progress)
    typer.echo(f"{files} files in {out}")


def _show(current: CampaignStatus, *, as_json: bool) -> None:
    from roundkit.cli.wave_tables import waves_table

    if as_json:
        typer.echo(json.dumps(_json_status(current), indent=2))
    else:
        waves_table(current)


def _json_status(current: CampaignStatus) -> dict[str, Any]:
    records = {
        "drafter": current.drafter,
        "decision": current.decision,
    }
    fleet = {**asdict(current.fleet), "idle_share": current.fleet.idle_share}
    return {
        "campaign": current.campaign_id,
        "digest": current.plan_sha256,
        "drafter_runs": current.drafter_runs,
        "gater_runs": current.gater_runs,
        "stop_asked": current.stop_asked,
        "queue": list(current.queue),
        "queue_depth": current.queue_depth,
        "workers": current.workers,
        **{name: record.to_json_value() if record is not None else None for name, record in records.items()},
        "fleet": {**fleet, "mean_running": current.fleet.mean_running},
        "waves": [
            {
                **{name: value for name, value in vars(wave).items() if name not in {"traffic", "row"}},
                "traffic": wave.traffic.to_json_value() if wave.traffic is not None else None,
                "row": wave.row.to_json_value() if wave.row is not None else None,
            }
            for wave in current.waves
        ],
    }
