"""A worker of a cluster: a Dask worker whose resources are this machine's device sets."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import dask
from distributed import Worker

from roundkit.core.clock import Deadline
from roundkit.core.errors import RoundkitError, refuse
from roundkit.core.outputs import check_new_folder
from roundkit.host.lease import default_lease_root
from roundkit.host.probes import Layer, probe_confinement
from roundkit.measure.cluster.asking import resource
from roundkit.measure.cluster.bench import Bench
from roundkit.measure.cluster.link import METRIC
from roundkit.measure.cluster.ports import check_worker_port
from roundkit.measure.cluster.reaching import not_connected, silence
from roundkit.measure.cluster.security import HTTP_ADDRESS, check_address, security_of
from roundkit.measure.cluster.sets import read_sets
from roundkit.measure.cluster.tasks import set_bench

Say = Callable[[str], None]

_RETRY_S = 1.0
_TIDY_S = 60.0
_CONNECT_S = "5s"
# A batch job that started after its coordinator was killed must not hold its node until its time is over.
_PATIENCE_S = 60.0
# A record whose coordinator is away waits in the spool; the worker need not.
_LEAVE_S = 5.0
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
    keep_records: timedelta,
    say: Say,
    hold: Callable[[Path], AbstractContextManager[None]],
    port: int = 0,
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
        keep_records: How long a record waits for its coordinator before it is removed.
        say: Takes one line for each thing that happens.
        hold: Keeps every other worker from the folder for as long as it is entered.
        port: Where the scheduler reaches this worker; 0 has the system choose one.
        until_lost: End when the scheduler goes away, as a batch job should, or was not reached in a minute.

    Raises:
        RoundkitError: with ``until_lost``, the scheduler was not reached.
        Refused: ``output-folder``, ``cannot-confine``, ``scheduler-address``, ``tls-needed``, ``tls-files``,
            ``tls-expired``, ``name-taken``, ``worker-port``, what ``hold`` refuses, or what
            :func:`read_sets` refuses.
    """
    check_address(scheduler, tls, place="--scheduler")
    sets = read_sets(sets_file)
    check_worker_port(_host(tls), port)
    home = home.absolute()
    check_new_folder(home, "--home")
    refuse_unconfined(probe_confinement())
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o711)
    with hold(home), dask.config.set(_QUIET):
        bench = Bench(sets, home, lease_root=default_lease_root(), keep_trees=keep_trees)
        set_bench(bench)
        silence("distributed", "tornado.application")
        connect = partial(_connected, scheduler, bench, home, tls, name, port)
        work = _work(scheduler, bench, tls, name, say, connect, until_lost=until_lost)
        asyncio.run(_tidied(work, bench, keep_records, say))


async def _tidied(work: Coroutine[Any, Any, None], bench: Bench, keep_records: timedelta, say: Say) -> None:
    """Work, and remove meanwhile what nobody will ask for."""
    tidying = asyncio.create_task(_keep_tidy(bench, keep_records, say))
    try:
        await work
    finally:
        tidying.cancel()


async def _keep_tidy(bench: Bench, keep_records: timedelta, say: Say) -> None:
    waiting = await asyncio.to_thread(bench.spool.all)
    if waiting:
        say(f"{len(waiting)} records of earlier work wait for their coordinators")
    said = ""
    while True:
        try:
            for line in await asyncio.to_thread(bench.tidy, keep_records):
                say(line)
        except OSError as error:
            why = f"what nobody will ask for cannot be removed: {error}"
            if why != said:
                say(why)
            said = why
        await asyncio.sleep(_TIDY_S)


async def _work(
    scheduler: str,
    bench: Bench,
    tls: Path | None,
    name: str | None,
    say: Say,
    connect: Callable[[], Awaitable[Worker]],
    *,
    until_lost: bool,
) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    said, patience, known = "", Deadline.after(_PATIENCE_S), False
    say(f"this machine can confine candidates; connecting to the scheduler at {scheduler}")
    while not stopping.is_set():
        try:
            worker = await connect()
        except Exception as error:  # whatever Dask makes of what answers there: it may be no scheduler
            why = await asyncio.to_thread(not_connected, error, scheduler, tls, name=name, known=known)
            if why != said:
                say(why)
            said = why
            if until_lost and patience.expired():
                raise RoundkitError(
                    f"the scheduler at {scheduler} was never there, so this worker ends"
                ) from error
            await _pause(stopping)
            if stopping.is_set():
                await _stop_trials(bench, say)
            continue
        said, known = "", True
        say(f"connected as {worker.name}: {', '.join(one.id for one in bench.device_sets)}")
        await _until_over(worker, stopping)
        if stopping.is_set():
            await _end(worker, bench, say)
        elif until_lost:
            say("the scheduler is gone, so this worker ends")
            return
        else:
            say("the scheduler is gone; what is being measured goes on, and its records are kept")


def _host(tls: Path | None) -> str | None:
    """Return where a worker listens: without TLS at the loopback address alone, else at all."""
    return "127.0.0.1" if tls is None else None


async def _connected(
    scheduler: str, bench: Bench, home: Path, tls: Path | None, name: str | None, port: int
) -> Worker:
    worker: Worker = await Worker(
        scheduler,
        name=name,
        nthreads=len(bench.device_sets) + _THREADS_BESIDE,
        resources={resource(device_set): 1 for device_set in bench.device_sets},
        local_directory=str(home / "dask"),
        memory_limit=0,
        security=security_of(tls),
        host=_host(tls),
        port=port,
        dashboard=False,
        dashboard_address=HTTP_ADDRESS,
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
    stopped = await _stop_trials(bench, say)
    patience = Deadline.after(_LEAVE_S)
    while not patience.expired() and not stopped.isdisjoint(one.run for one in bench.spool.all()):
        await asyncio.sleep(_RETRY_S / 10)
    await worker.close()


async def _stop_trials(bench: Bench, say: Say) -> frozenset[str]:
    """End what runs at its next trial, and return which runs those were."""
    stopped = frozenset(bench.stop_all())
    say("stopping: the running trials end" if bench.running() else "stopping: nothing is being measured")
    while bench.running():
        await asyncio.sleep(_RETRY_S / 10)
    return stopped
