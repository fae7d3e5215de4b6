"""Which device pool measures a round: this machine's, or a cluster's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from roundkit.core.canonical import digest_json
from roundkit.core.errors import refuse
from roundkit.host.devices import machine_sha256
from roundkit.host.lease import default_lease_root
from roundkit.measure.cluster.extra import require
from roundkit.measure.pool import DevicePool, LocalPool
from roundkit.models.round_plan import RoundPlan
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


def store_identity(folder: RoundFolder) -> str:
    """Return which store asks a cluster: the same when started anew or moved on its disk, not for a copy.

    Two copies have everything in common but their place on the disk. What one of them asked for must never
    be ended, joined or fetched by the other. Disks count their files alike, so that the disk belongs to it.
    """
    disk = f"{os.statvfs(folder.store).f_fsid:x}"
    return digest_json(["store", machine_sha256(), disk, folder.store.stat().st_ino])


def local_pool(plan: RoundPlan) -> AbstractContextManager[DevicePool]:
    """Return the pool of this machine's own devices.

    Raises:
        Refused: ``no-scheduler``; every device set is a named machine's, so that only its worker measures.
    """
    named = sorted({one.machine for one in plan.device_sets if one.machine is not None})
    if all(one.machine is not None for one in plan.device_sets):
        raise refuse(
            "no-scheduler",
            f"every device set of the plan is of a named machine, whose worker measures: {', '.join(named)}",
            place="--pool",
            remedy="add `--pool dask --scheduler ADDRESS`; docs/how-to/cluster.md tells how to start workers",
        )
    return closing(LocalPool(plan.device_sets, lease_root=default_lease_root()))


def chosen_pool(folder: RoundFolder, choice: PoolChoice) -> AbstractContextManager[DevicePool] | None:
    """Return the pool of a choice, None for this machine's own, which whoever measures makes by itself.

    Nothing is connected to or submitted before it is entered: whoever does so holds the round's lock.

    Raises:
        Refused: ``no-scheduler``, ``no-slurm-file``, ``slurm-option``, ``missing-extra``; once entered,
            ``scheduler-address``, ``tls-needed``, ``tls-files``, ``tls-expired``, what is wrong with the file
            of batch workers, or the plan was changed.
    """
    if choice.slurm is not None and choice.kind != "slurm":
        raise refuse(
            "slurm-option",
            f"the {choice.kind} pool submits no workers",
            place="--slurm",
            remedy="add `--pool slurm`, or leave the file out",
        )
    if choice.kind == "local":
        if choice.scheduler is not None or choice.tls is not None:
            raise refuse(
                "no-scheduler",
                "the local pool has no scheduler",
                place="--scheduler",
                remedy="add `--pool dask` to measure on a cluster",
            )
        return None
    if choice.scheduler is None:
        raise refuse(
            "no-scheduler",
            "a cluster is reached through its scheduler",
            place="--scheduler",
            remedy="start one with `dask scheduler` and name its address",
        )
    require("distributed", *(["dask_jobqueue"] if choice.kind == "slurm" else []))
    if choice.kind == "slurm" and choice.slurm is None:
        raise refuse(
            "no-slurm-file",
            "nothing says how workers are submitted",
            place="--slurm",
            remedy="name the file with jobs, device sets and options; docs/how-to/cluster.md has one",
        )
    return _cluster_pool(folder, choice, choice.scheduler)


@contextmanager
def _cluster_pool(folder: RoundFolder, choice: PoolChoice, scheduler: str) -> Iterator[DevicePool]:
    plan = read_plan(folder)
    with _scheduler(choice, scheduler) as (address, missing):
        # Only here: without the extra, everything else works as it did.
        from roundkit.measure.cluster.pool import DaskPool
        from roundkit.rules.record_checks import record_problem

        pool = DaskPool(
            plan.device_sets,
            plan_digest=plan.digest(),
            store_sha256=store_identity(folder),
            scheduler=address,
            scratch=folder.store,
            tls=choice.tls,
            check=record_problem,
            missing=missing,
        )
        try:
            yield pool
        finally:
            pool.close()


@contextmanager
def _scheduler(choice: PoolChoice, address: str) -> Iterator[tuple[str, Callable[[], str | None]]]:
    """Yield the scheduler's address, and what says why workers are missing."""
    if choice.slurm is None:
        yield address, lambda: None
        return
    from roundkit.measure.cluster.slurm import read_workers, slurm_workers

    with slurm_workers(read_workers(choice.slurm), address, choice.tls) as submitted:
        yield submitted.address, submitted.trouble
