"""What the coordinator itself costs a ticket, with few and with many tickets in the store.

Intake, turns, laying, checkouts, recording and mirroring are serve's own. Confined runs are subtracted,
and a stand-in for the device pool hands back a real experiment's record at once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from bench.one_ticket import manifest_of, renamed, serve_one_ticket
from bench.result import Figure, environment
from support.synthetic import campaign_repo, knob, reachable_folder

from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import now_utc
from roundkit.host.lease import LEASE_ROOT_VARIABLE
from roundkit.measure import probe
from roundkit.measure.experiment import Progress
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.lane import Manifest
from roundkit.models.measurement import MeasurementRequest
from roundkit.models.round_plan import DeviceSet
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.serve import serve
from roundkit.rules.identity import experiment_name, ticket_key, ticket_name
from roundkit.rules.run_spec import run_spec_of
from roundkit.rules.verdict import decide
from roundkit.store import RoundStore, open_store

TARGET_MS = 150.0
TARGET_FLAT = 1.25
LANES = tuple(f"L{number}" for number in range(1, 9))


def measure(tiny: bool) -> Iterator[Figure]:
    """Yield the time per ticket at the larger store, and its ratio to the smaller one's."""
    small, large, new = (4, 12, 4) if tiny else (100, 10_000, 24)
    with reachable_folder() as home, environment({LEASE_ROOT_VARIABLE: str(home / "leases")}):
        folder, records = serve_one_ticket(home, campaign_repo(home, LANES), aa_interval=1_000_000)
        record = records["ticket"]
        costs = {}
        for number, stored in enumerate((small, large)):
            _fill(folder, record, stored)
            costs[stored] = _serve_new(folder, record, new, number)
    detail = {"new_tickets": new, "ms": {stored: asdict(cost) for stored, cost in costs.items()}}
    shown = f"{large:,} tickets in the store"
    yield Figure(
        "coordinator", f"coordinator's time a ticket, {shown}", costs[large].wall_ms, "ms", TARGET_MS,
        detail=detail,
    )  # fmt: skip
    yield Figure("coordinator-cpu", f"CPU time of that, {shown}", costs[large].cpu_ms, "ms", detail=detail)
    yield Figure(
        "coordinator-flat", f"the same CPU time, over that with {small:,} tickets",
        costs[large].cpu_ms / costs[small].cpu_ms, "x", TARGET_FLAT, detail=detail,
    )  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """What one ticket costs the coordinator: by the clock, and in CPU time, its git commands included."""

    wall_ms: float
    cpu_ms: float


class RecordPool:
    """A device pool that hands back one record, whatever is asked of it."""

    def __init__(self, sets: Sequence[DeviceSet], record: ExperimentRecord) -> None:
        self._sets = tuple(sets)
        self._record = record

    def stand_in_line(self, *, wanted: bool) -> None:
        pass

    def trouble(self) -> None:
        return None

    def late_records(self) -> tuple[ExperimentRecord, ...]:
        return ()

    def free_sets(self) -> tuple[DeviceSet, ...]:
        return self._sets

    def submit(
        self, request: MeasurementRequest, *, progress: Progress | None = None
    ) -> Future[ExperimentRecord]:
        assert request.purpose == "ticket"
        future: Future[ExperimentRecord] = Future()
        future.set_result(renamed(self._record, request.experiment_id, request.subject, request.lane))
        return future

    def close(self) -> None:
        pass


def _fill(folder: RoundFolder, record: ExperimentRecord, total: int) -> None:
    """Bring the store to so many measured tickets, each with an experiment and a verdict of its own.

    Their records are cut to the first trials, since writing 10,000 whole ones takes minutes.
    """
    plan = read_plan(folder)
    verdict = decide(record, run_spec_of(plan))
    record = record.model_copy(update={"trials": record.trials[:2]})
    with open_store(folder.database) as store, store.transaction():
        for number in range(store.tickets.count(), total):
            lane = LANES[number % len(LANES)]
            manifest = manifest_of(lane, f"stored {number}".encode())
            key = ticket_key(plan.digest(), lane, manifest.content_digest())
            name = ticket_name(plan.round_id, lane, key)
            # Names have eight digits: some two of 10,000 may collide, which intake would reject.
            if store.tickets.find(name) is None:
                _store_one(store, record, verdict, manifest, key, name)


def _store_one(
    store: RoundStore, record: ExperimentRecord, verdict: Any, manifest: Manifest, key: str, name: str
) -> None:
    now: datetime = now_utc()
    store.tickets.add(key=key, ticket=name, manifest=manifest, intake_utc=now, provenance="person")
    store.experiments.begin(experiment_name(name, 1), "ticket", name, 1)
    store.experiments.finish(renamed(record, experiment_name(name, 1), name, manifest.lane))
    store.tickets.set_verdict(key, verdict, now)
    store.events.add("verdict", ticket=name, verdict=verdict.verdict)


def _serve_new(folder: RoundFolder, record: ExperimentRecord, new: int, batch: int) -> Cost:
    """Submit new tickets, let serve measure them, and return what each cost.

    Serve's start (building the incumbent, mirroring every ticket) ends with its first line about a ticket.
    """
    plan = read_plan(folder)
    for number in range(new):
        lane = LANES[number % len(LANES)]
        submit_by_hand(folder, plan.digest(), lane, knob(0.1 + batch / 10 + number / 1000).encode())
    lines: list[str] = []
    began: list[tuple[float, float]] = []
    with _confined_time() as confined:

        def outside_s() -> tuple[float, float]:
            wall_s, cpu_s = map(sum, zip(*confined, strict=True))
            return time.perf_counter() - wall_s, _cpu_s() - cpu_s

        def report(line: str) -> None:
            began or began.append(outside_s())
            lines.append(line)

        pool = nullcontext(RecordPool(plan.device_sets, record))
        outcome = serve(folder, until="idle", report=report, pool=pool)
        ended = outside_s()
    assert outcome.ended == "idle"
    assert sum(" pass:" in line for line in lines) == new, lines
    wall_s, cpu_s = (end - begin for begin, end in zip(began[0], ended, strict=True))
    return Cost(1000 * wall_s / new, 1000 * cpu_s / new)


def _cpu_s() -> float:
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system


@contextmanager
def _confined_time() -> Iterator[list[tuple[float, float]]]:
    """Collect wall and CPU seconds of confined commands; there is one builder, so they never overlap."""
    seconds: list[tuple[float, float]] = []
    real: Callable[..., Any] = probe.confined_execute

    def timed(*arguments: Any, **options: Any) -> Any:
        wall_s, cpu_s = time.perf_counter(), _cpu_s()
        try:
            return real(*arguments, **options)
        finally:
            seconds.append((time.perf_counter() - wall_s, _cpu_s() - cpu_s))

    probe.confined_execute = timed
    try:
        yield seconds
    finally:
        probe.confined_execute = real


def submit_by_hand(folder: RoundFolder, digest: str, lane: str, content: bytes) -> None:
    manifest = manifest_of(lane, content)
    entry = folder.outbox(lane) / ticket_key(digest, lane, manifest.content_digest())
    (entry / "blobs").mkdir(parents=True)
    (entry / "blobs" / digest_bytes(content)).write_bytes(content)
    (entry / "manifest.json").write_bytes(manifest.to_bytes())
