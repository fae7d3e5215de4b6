"""Commands of a cluster: a worker on each machine, and its certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roundkit.cli.app import app, report_line

_DEFAULT_HOME = Path.home() / ".cache" / "roundkit" / "worker"

Tls = Annotated[
    Path | None,
    typer.Option(help="Folder of certificates, from `cluster cert`; needed wherever it is not loopback."),
]


@app.command(rich_help_panel="Cluster")
def worker(
    scheduler: Annotated[str, typer.Option(help="Address of the Dask scheduler, tls://HOST:PORT.")],
    device_sets: Annotated[Path, typer.Option(help="YAML file with what this machine offers.")],
    tls: Tls = None,
    home: Annotated[
        Path, typer.Option(help="Folder of this worker alone: incumbents, scratch, records.")
    ] = _DEFAULT_HOME,
    name: Annotated[str | None, typer.Option(help="The worker's name in the cluster.")] = None,
    keep_incumbents: Annotated[
        int, typer.Option(min=1, help="How many trees stay on the disk for later experiments.")
    ] = 16,
    until_lost: Annotated[
        bool, typer.Option("--until-lost", help="End when the scheduler goes away, as a batch job should.")
    ] = False,
) -> None:
    """Offer this machine's device sets to a cluster; a machine that cannot confine candidates is refused.

    Example: roundkit worker --scheduler tls://10.0.0.1:8786 --tls certs --device-sets sets.yaml
    """
    from roundkit.measure.cluster.extra import require

    require("distributed")
    from roundkit.measure.cluster.worker import run_worker

    run_worker(
        scheduler,
        device_sets,
        home=home,
        tls=tls,
        name=name,
        keep_trees=keep_incumbents,
        say=report_line,
        until_lost=until_lost,
    )


cluster_app = typer.Typer(no_args_is_help=True, help="Certificates and batch jobs of a cluster.")
app.add_typer(cluster_app, name="cluster", rich_help_panel="Cluster")


@cluster_app.command()
def cert(
    out: Annotated[Path, typer.Argument(help="Folder to make; copy it to each machine of the cluster.")],
    days: Annotated[int, typer.Option(min=1, help="How long the certificates hold.")] = 365,
) -> None:
    """Make the certificates by which the machines of one cluster know each other."""
    from roundkit.measure.cluster.extra import require

    require("cryptography")
    from roundkit.measure.cluster.certificates import make_certificates

    end = make_certificates(out, days=days)
    typer.echo(f"certificates in {out}, until {end:%Y-%m-%d}; whoever has {out}/cluster.key is let in")


@cluster_app.command("job-script")
def job_script(
    slurm: Annotated[Path, typer.Argument(help="YAML file that says how workers are submitted.")],
    scheduler: Annotated[str, typer.Option(help="Address at which serve will listen, tls://HOST:PORT.")],
    tls: Tls = None,
) -> None:
    """Print the Slurm script of one worker as it would be submitted; submits nothing."""
    from roundkit.measure.cluster.extra import require

    require("distributed", "dask_jobqueue")
    from roundkit.measure.cluster import slurm as jobs

    typer.echo(jobs.job_script(jobs.read_workers(slurm), scheduler, tls), nl=False)
