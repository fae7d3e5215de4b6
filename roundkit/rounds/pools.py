"""Which device pool measures a round: this machine's, or a cluster's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from roundkit.core.errors import refuse
from roundkit.measure.cluster.extra import require
from roundkit.measure.pool import DevicePool
from roundkit.rounds.layout import RoundFolder, read_plan

PoolKind = Literal["local", "dask", "slurm"]


@dataclass(frozen=True)
class PoolChoice:
    """What an owner chose to measure on.

    Attributes:
        kind: ``local``: this machine's devices; ``dask``: those of the workers of a Dask scheduler;
            ``slurm``: those of workers that are submitted as jobs, to a scheduler that runs here.
        scheduler: Address of the scheduler; for ``slurm``, to listen on.
        tls: Folder with certificates; None without TLS.
        slurm: File that says how workers are submitted.
    """

    kind: PoolKind = "local"
    scheduler: str | None = None
    tls: Path | None = None
    slurm: Path | None = None


@contextmanager
def chosen_pool(folder: RoundFolder, choice: PoolChoice) -> Iterator[DevicePool | None]:
    """Yield the pool of a choice, None for this machine's own, which whoever measures makes by itself.

    Raises:
        Refused: ``no-scheduler``, ``no-slurm-file``, ``slurm-option``, ``missing-extra``,
            ``scheduler-address``, ``tls-needed``, ``tls-files``, or
            the plan was changed.
    """
    if choice.kind == "local":
        if choice.scheduler is not None or choice.tls is not None:
            raise refuse(
                "no-scheduler",
                "the local pool has no scheduler",
                place="--scheduler",
                remedy="add `--pool dask` to measure on a cluster",
            )
        yield None
        return
    if choice.scheduler is None:
        raise refuse(
            "no-scheduler",
            "a cluster is reached through its scheduler",
            place="--scheduler",
            remedy="start one with `dask scheduler` and name its address",
        )
    plan = read_plan(folder)
    with _scheduler(choice, choice.scheduler) as address:
        # Only here: without the extra, everything else works as it did.
        from roundkit.measure.cluster.pool import DaskPool

        pool = DaskPool(plan.device_sets, plan_digest=plan.digest(), scheduler=address, tls=choice.tls)
        try:
            yield pool
        finally:
            pool.close()


@contextmanager
def _scheduler(choice: PoolChoice, address: str) -> Iterator[str]:
    if choice.kind != "slurm":
        yield address
        return
    require("distributed", "dask_jobqueue")
    if choice.slurm is None:
        raise refuse(
            "no-slurm-file",
            "nothing says how workers are submitted",
            place="--slurm",
            remedy="name the file with jobs, device sets and options; docs/cluster.md has one",
        )
    from roundkit.measure.cluster.slurm import read_workers, slurm_workers

    with slurm_workers(read_workers(choice.slurm), address, choice.tls) as listening:
        yield listening
