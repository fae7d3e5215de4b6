"""Commands of a cluster: a worker on each machine, and its certificates."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from roundkit.cli.app import app, report_line
from roundkit.cli.manual import Manual

# A hundred years: a time that ends beyond the calendar's last year is none.
_MOST_DAYS = 36500
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
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, help="Where the scheduler reaches this worker, for a firewall; 0: any port."
        ),
    ] = 0,
    keep_incumbents: Annotated[
        int, typer.Option(min=1, help="How many trees stay on the disk for later experiments.")
    ] = 16,
    keep_records: Annotated[
        int,
        typer.Option(
            min=1,
            max=_MOST_DAYS,
            metavar="DAYS",
            help="How long a record stays that its round never comes to fetch.",
        ),
    ] = 90,
    until_lost: Annotated[
        bool,
        typer.Option(
            "--until-lost", help="End when the scheduler goes away or is not there, as a batch job should."
        ),
    ] = False,
) -> None:
    r"""Offer this machine's device sets to a cluster; a machine that cannot confine candidates is refused.

    Ctrl-C ends it after the running trials. Needs `pip install 'roundkit[cluster]'`.

    Examples:
        roundkit worker --scheduler tls://10.0.0.1:8786 --tls certs \
            --device-sets sets.yaml
        # In a batch job: end with the scheduler
        roundkit worker --scheduler tls://10.0.0.1:8786 --tls certs \
            --device-sets sets.yaml --until-lost
    """
    from roundkit.measure.cluster.extra import require

    require("distributed")
    from roundkit.measure.cluster.worker import run_worker
    from roundkit.rounds.locks import hold_lock

    def hold(folder: Path) -> AbstractContextManager[None]:
        return hold_lock(
            folder / "worker.lock", code="home-taken", what=f"a worker with the home {folder}",
            remedy="stop that one, or name another folder with --home",
        )  # fmt: skip

    run_worker(
        scheduler,
        device_sets,
        home=home,
        tls=tls,
        name=name,
        keep_trees=keep_incumbents,
        keep_records=timedelta(days=keep_records),
        say=report_line,
        hold=hold,
        port=port,
        until_lost=until_lost,
    )


cluster_app = Manual(help="Certificates and batch jobs of a cluster.")
app.add_typer(cluster_app, name="cluster", rich_help_panel="Cluster")


@cluster_app.command()
def cert(
    out: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder to make; copy it to each machine of the cluster.")
    ],
    days: Annotated[int, typer.Option(min=1, max=_MOST_DAYS, help="How long the certificates hold.")] = 365,
) -> None:
    """Make the certificates by which the machines of one cluster know each other.

    Needs `pip install 'roundkit[cluster]'`.

    Examples:
        roundkit cluster cert certs --days 90

    Files:
        FOLDER/cluster.key: Whoever has it is let in.
    """
    from roundkit.measure.cluster.extra import require

    require("cryptography")
    from roundkit.measure.cluster.certificates import make_certificates

    end = make_certificates(out, days=days)
    typer.echo(f"certificates in {out}, until {end:%Y-%m-%d}; whoever has {out}/cluster.key is let in")


@cluster_app.command("job-script")
def job_script(
    slurm: Annotated[
        Path, typer.Argument(metavar="SLURM_YAML", help="YAML file that says how workers are submitted.")
    ],
    scheduler: Annotated[str, typer.Option(help="Address at which serve will listen, tls://HOST:PORT.")],
    tls: Tls = None,
) -> None:
    r"""Print the batch script of one worker as it would be submitted; submits nothing.

    Needs `pip install 'roundkit[cluster]'`.

    Examples:
        roundkit cluster job-script slurm.yaml --tls certs \
            --scheduler tls://10.0.0.1:8786
    """
    from roundkit.measure.cluster.extra import require

    require("distributed", "dask_jobqueue")
    from roundkit.measure.cluster import slurm as jobs

    typer.echo(jobs.job_script(jobs.read_workers(slurm), scheduler, tls), nl=False)
