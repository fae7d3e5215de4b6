"""Which device pool measures a round: this machine's, or a cluster's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from roundkit.core.errors import refuse
from roundkit.measure.pool import DevicePool
from roundkit.rounds.layout import RoundFolder, read_plan

PoolKind = Literal["local", "dask"]


@dataclass(frozen=True)
class PoolChoice:
    """What an owner chose to measure on.

    Attributes:
        kind: ``local``: this machine's devices; ``dask``: those of the workers of a Dask scheduler.
        scheduler: Address of the scheduler.
        tls: Folder with certificates; None without TLS.
    """

    kind: PoolKind = "local"
    scheduler: str | None = None
    tls: Path | None = None


@contextmanager
def chosen_pool(folder: RoundFolder, choice: PoolChoice) -> Iterator[DevicePool | None]:
    """Yield the pool of a choice, None for this machine's own, which whoever measures makes by itself.

    Raises:
        Refused: ``no-scheduler``, ``missing-extra``, ``scheduler-address``, ``tls-needed``, ``tls-files``, or
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
    # Only here: without the extra, everything else works as it did.
    from roundkit.measure.cluster.pool import DaskPool

    plan = read_plan(folder)
    pool = DaskPool(plan.device_sets, plan_digest=plan.digest(), scheduler=choice.scheduler, tls=choice.tls)
    try:
        yield pool
    finally:
        pool.close()
