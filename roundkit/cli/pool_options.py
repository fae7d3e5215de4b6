"""Options that say who measures, and where; serve and close take them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Pool(StrEnum):
    """Who measures."""

    local = "local"
    dask = "dask"
    slurm = "slurm"


_CLUSTER = "Where it is measured"
PoolOption = Annotated[
    Pool,
    typer.Option(
        help="Who measures: this machine, a Dask cluster's workers, or batch jobs.", rich_help_panel=_CLUSTER
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        help="Address of the Dask scheduler, tls://HOST:PORT; for batch jobs, to listen on.",
        rich_help_panel=_CLUSTER,
    ),
]
SlurmOption = Annotated[
    Path | None,
    typer.Option(
        help="YAML file that says how workers are submitted, to Slurm, PBS, LSF or SGE.",
        rich_help_panel=_CLUSTER,
    ),
]
TlsOption = Annotated[
    Path | None,
    typer.Option(help="Folder of certificates, from `roundkit cluster cert`.", rich_help_panel=_CLUSTER),
]


def pool_words(pool: Pool, scheduler: str | None, tls: Path | None, slurm: Path | None) -> list[str | Path]:
    """Return the options as they were given, for a command that is printed; none for this machine."""
    given = {
        "--pool": None if pool == Pool.local else pool.value,
        "--scheduler": scheduler,
        "--tls": tls,
        "--slurm": slurm,
    }
    return [word for option, value in given.items() if value is not None for word in (option, value)]
