"""Serve: one process owns the queue of a round; whatever ends it, the next one goes on from the store."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import refuse
from roundkit.core.progress import SILENT, Progress, Task
from roundkit.measure.pool import DevicePool
from roundkit.rounds.closing import refuse_closed
from roundkit.rounds.disk_space import explain_full_disk
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.left_credentials import remove_left_credentials
from roundkit.rounds.locks import describe_holder, hold_lock, is_held
from roundkit.rounds.pools import local_pool
from roundkit.rounds.provisioning import provisioned
from roundkit.rounds.requests import Bench
from roundkit.rounds.serve_state import Report, ServeOutcome, Until
from roundkit.rounds.server import Server
from roundkit.rounds.stopping import stop_on_signal
from roundkit.rounds.watched_pool import WatchedPool
from roundkit.rules.run_spec import run_spec_of
from roundkit.store import RoundStore, open_store

__all__ = ["Report", "ServeOutcome", "Until", "open_bench", "serve"]


def open_bench(folder: RoundFolder) -> Bench:
    """Read and check the frozen plan and the secret of a round.

    Raises:
        Refused: the plan or the secret is not what was frozen.
    """
    plan = read_plan(folder)
    remove_left_credentials(folder)
    secret = folder.secret_file.read_bytes() if folder.secret_file.is_file() else b""
    if digest_bytes(secret) != plan.secret_sha256:
        raise refuse(
            "secret-changed",
            "the coordinator's secret is not the one that was frozen",
            place=str(folder.secret_file),
            remedy="restore store/secret, or prepare a new round",
        )
    return Bench(folder, plan, run_spec_of(plan), secret)


def serve(
    folder: RoundFolder,
    *,
    until: Until,
    report: Report,
    pool: AbstractContextManager[DevicePool] | None = None,
    progress: Progress = SILENT,
) -> ServeOutcome:
    """Serve a round until its queue is idle, or until its deadline.

    Killed at any moment, the next serve goes on from the store.

    Args:
        folder: The round.
        until: ``idle`` ends when nothing waits any more; ``deadline`` waits for more until the deadline.
        report: Takes one line for each thing that happens.
        pool: Who measures, made once the round is this process's to serve; the local devices by default.
        progress: Shows tickets, and the trials of each that is being measured.

    Raises:
        Refused: ``serve-running``, ``close-running``, ``round-closing``, ``round-closed``, or the plan was
            changed.
        DiskFull: there is not even space to write down that the queue is paused.
    """
    bench = open_bench(folder)
    _refuse_closing(folder)
    with (
        explain_full_disk(folder.root, "serve"),
        stop_on_signal() as stop,
        hold_lock(folder.serve_lock, code="serve-running", what="serve"),
        open_store(folder.database) as store,
        ThreadPoolExecutor(_builders(bench), thread_name_prefix="build") as builders,
    ):
        refuse_closed(folder, bench.plan, store)
        with store.transaction():  # first of all: provisioning takes long, and may be told to end
            store.control.clear("drain")
            store.control.clear("waiting")
        with pool or local_pool(bench.plan) as device_pool:
            ready = provisioned(bench, store, report)
            name, unit = f"serve {bench.plan.round_id}", "tickets with an end"
            # More may be submitted at any time, so what has its end foretells nothing.
            with progress.task(name, None, unit, foresight="none") as whole:
                watched, say = WatchedPool(device_pool, progress), _counting(report, store, whole)
                return Server(ready, store, watched, builders, say, stop).run(until)


def _builders(bench: Bench) -> int:
    """Return how many candidates are built at once: one a device set, as far as this machine has cores."""
    return min(len(bench.plan.device_sets), os.cpu_count() or 1)


def _counting(report: Report, store: RoundStore, whole: Task) -> Report:
    """Count the tickets that have an end whenever something happened."""

    def say(line: str) -> None:
        ended = store.tickets.count(state="measured") + store.tickets.count(state="rejected")
        whole.set(ended, store.tickets.count())
        report(line)

    return say


def _refuse_closing(folder: RoundFolder) -> None:
    if is_held(folder.close_lock):
        raise refuse(
            "close-running",
            f"close runs for this round: {describe_holder(folder.close_lock)}",
            place=str(folder.root),
            remedy="a round that is being closed measures no more tickets",
        )
