"""A worker of a cluster: a Dask worker whose resources are this machine's device sets."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
from distributed import Worker

from roundkit.core.errors import refuse
from roundkit.host.lease import default_lease_root
from roundkit.host.probes import Layer, probe_confinement
from roundkit.measure.cluster.bench import Bench
from roundkit.measure.cluster.flights import resource
from roundkit.measure.cluster.link import METRIC
from roundkit.measure.cluster.security import check_address, security_of
from roundkit.measure.cluster.sets import read_sets
from roundkit.measure.cluster.tasks import set_bench

Say = Callable[[str], None]

_RETRY_S = 1.0
_CONNECT_S = "5s"
# Beside the device sets' own: trees arrive and records leave while everything measures.
_THREADS_BESIDE = 2
# What would take the processor from a trial, or act on memory that is the trials' to use.
_QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.system-monitor.disk": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.comm.timeouts.connect": _CONNECT_S,
}


def refuse_unconfined(layers: list[Layer]) -> None:
    """Refuse to work where candidates cannot be confined.

    Raises:
        Refused: ``cannot-confine``, with everything that is missing.
    """
    missing = [layer for layer in layers if layer.needed and not layer.present]
    if missing:
        raise refuse(
            "cannot-confine",
            "this machine cannot confine candidates, so it takes no work: "
            + "; ".join(f"{layer.name}: {layer.detail}" for layer in missing),
            remedy="; ".join(sorted({layer.remedy for layer in missing})) or "run `roundkit doctor`",
        )


def run_worker(
    scheduler: str,
    sets_file: Path,
    *,
    home: Path,
    tls: Path | None,
    name: str | None,
    keep_trees: int,
    say: Say,
    until_lost: bool = False,
) -> None:
    """Offer this machine's device sets to a cluster until SIGTERM or Ctrl-C; the running trials end first.

    A scheduler that is not there, or goes away, is waited for; what is being measured goes on meanwhile.

    Args:
        scheduler: Address of the scheduler.
        sets_file: The device sets.
        home: A folder of this worker alone, for trees, scratch and records.
        tls: Folder with certificates; None without TLS.
        name: The worker's name in the cluster; None has Dask make one.
        keep_trees: How many incumbents stay for later experiments.
        say: Takes one line for each thing that happens.
        until_lost: End when the scheduler goes away, as a batch job should.

    Raises:
        Refused: ``cannot-confine``, ``scheduler-address``, ``tls-needed``, ``tls-files``, or what
            :func:`read_sets` refuses.
    """
    check_address(scheduler, tls, place="--scheduler")
    sets = read_sets(sets_file)
    refuse_unconfined(probe_confinement())
    home = home.absolute()
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o711)
    bench = Bench(sets, home, lease_root=default_lease_root(), keep_trees=keep_trees)
    set_bench(bench)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with dask.config.set(_QUIET):
        asyncio.run(_work(scheduler, bench, home, tls, name, say, until_lost=until_lost))


async def _work(
    scheduler: str,
    bench: Bench,
    home: Path,
    tls: Path | None,
    name: str | None,
    say: Say,
    *,
    until_lost: bool,
) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    said = ""
    while not stopping.is_set():
        try:
            worker = await _connected(scheduler, bench, home, tls, name)
        except (OSError, TimeoutError, RuntimeError, ValueError) as error:
            why = f"the scheduler at {scheduler} does not answer: {' '.join(str(error).split())[:200]}"
            if why != said:
                say(why)
            said = why
            await _pause(stopping)
            continue
        said = ""
        say(f"connected as {worker.name}: {', '.join(one.id for one in bench.device_sets)}")
        await _until_over(worker, stopping)
        if stopping.is_set():
            await _end(worker, bench, say)
        elif until_lost:
            return
        else:
            say("the scheduler is gone; what is being measured goes on, and its records are kept")


async def _connected(scheduler: str, bench: Bench, home: Path, tls: Path | None, name: str | None) -> Worker:
    loopback = "127.0.0.1" if tls is None else None
    worker: Worker = await Worker(
        scheduler,
        name=name,
        nthreads=len(bench.device_sets) + _THREADS_BESIDE,
        resources={resource(device_set): 1 for device_set in bench.device_sets},
        local_directory=str(home / "dask"),
        memory_limit=0,
        security=security_of(tls),
        host=loopback,
        dashboard=False,
        heartbeat_interval="500ms",
        metrics={METRIC: _telling(bench)},
        death_timeout=_CONNECT_S,
    )
    return worker


def _telling(bench: Bench) -> Callable[[Any], Any]:
    async def tell(_worker: Any) -> str:
        state = await asyncio.to_thread(bench.state)
        return state.to_bytes().decode()

    return tell


async def _pause(stopping: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(stopping.wait(), _RETRY_S)
    except TimeoutError:
        return


async def _until_over(worker: Worker, stopping: asyncio.Event) -> None:
    over = [asyncio.ensure_future(worker.finished()), asyncio.ensure_future(stopping.wait())]
    await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
    for task in over:
        task.cancel()


async def _end(worker: Worker, bench: Bench, say: Say) -> None:
    """End what runs at its next trial, let its records leave, and go."""
    bench.stop_all()
    say("stopping: the running trials end")
    while bench.running():
        await asyncio.sleep(_RETRY_S / 10)
    await worker.close()
