"""K04: 256 device sets on a virtual clock, with serve's own queue, store, turns and verdicts.

Experiments take virtual minutes and no real time; what the coordinator really computes is added to the clock,
so that a slow queue shows as idle devices. Builds are left out: their cost is in the row ``coordinator``.
"""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any, cast

from bench.one_ticket import manifest_of, renamed, serve_one_ticket
from bench.result import Figure, environment
from support.synthetic import campaign_repo, reachable_folder

from roundkit.core.clock import now_utc
from roundkit.host.devices.fixture import FIXTURE_VARIABLE
from roundkit.host.lease import LEASE_ROOT_VARIABLE
from roundkit.measure.experiment import Progress
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.measurement import MeasurementRequest, Purpose, SideRef
from roundkit.models.round_plan import DeviceSet
from roundkit.rounds.building import Built
from roundkit.rounds.candidate_build import build_ticket
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.serve import open_bench
from roundkit.rounds.server import Server
from roundkit.rounds.stopping import StopRequest
from roundkit.rules.identity import ticket_key, ticket_name
from roundkit.store import RoundStore, open_store

EXPERIMENT_S = 120.0
"""Virtual seconds of one experiment, on average."""
UTILIZATION_TARGET = 95.0
CPU_TARGET_MS = 150.0
LANES = tuple(f"L{number}" for number in range(1, 9))
_LOAD = 0.8


def measure(tiny: bool) -> Iterator[Figure]:
    """Yield utilization with a backlog, queue wait below capacity, and the coordinator's CPU a ticket."""
    sets, tickets = (6, 24) if tiny else (256, 2048)
    with reachable_folder() as home:
        env = {FIXTURE_VARIABLE: str(home / "devices"), LEASE_ROOT_VARIABLE: str(home / "leases")}
        with environment(env):
            folder, records = _round(home, sets)
            full = _simulate(folder, records, sets, tickets, load=None)
            paced = _simulate(folder, records, sets, tickets, load=_LOAD)
    detail = {
        "sets": sets, "tickets": tickets, "experiment_s": EXPERIMENT_S, "load": _LOAD,
        "median_wait_s": median(paced.waits or [0.0]), "paced_cpu_ms": paced.cpu_ms,
        "makespan_s": full.makespan_s,
    }  # fmt: skip
    yield Figure(
        "fleet-utilization", f"{sets} simulated device sets in use, with a backlog", full.utilization, "%",
        UTILIZATION_TARGET, "higher", detail,
    )  # fmt: skip
    yield Figure(
        "fleet-wait", f"mean wait for a device, tickets coming at {100 * _LOAD:.0f} % of capacity",
        mean(paced.waits or [0.0]), "s", EXPERIMENT_S / 10, detail=detail,
    )  # fmt: skip
    yield Figure(
        "fleet-cpu", "coordinator's CPU time a ticket, builds left out", full.cpu_ms, "ms", CPU_TARGET_MS,
        detail=detail,
    )  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What came of one simulation; times are virtual but for the CPU's."""

    utilization: float
    makespan_s: float
    waits: list[float]
    cpu_ms: float


@dataclass
class VirtualPool:
    """Device sets whose experiments end on a virtual clock, which goes on when serve has nothing to start."""

    sets: Sequence[DeviceSet]
    records: dict[Purpose, ExperimentRecord]
    arrivals: list[tuple[float, Callable[[], str]]]
    random: random.Random = field(default_factory=lambda: random.Random(1))
    now_s: float = 0.0
    first_s: float | None = None
    window_s: float = 0.0
    busy_s: float = 0.0
    arrived_s: dict[str, float] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    _running: list[tuple[float, int, str, Future[ExperimentRecord], ExperimentRecord]] = field(
        default_factory=list
    )
    _taken: set[str] = field(default_factory=set)
    _started: int = 0
    _in_use_s: float = 0.0
    _cpu_s: float = field(default_factory=time.process_time)

    def free_sets(self) -> tuple[DeviceSet, ...]:
        return tuple(one for one in self.sets if one.id not in self._taken)

    def submit(
        self, request: MeasurementRequest, *, progress: Progress | None = None
    ) -> Future[ExperimentRecord]:
        self._pass_real_time()
        chosen = next(one for one in request.device_sets if one.id not in self._taken)
        self._taken.add(chosen.id)
        self._started += 1
        took_s = self.random.lognormvariate(0.0, 0.3) * EXPERIMENT_S
        if request.purpose == "ticket":
            self.first_s = self.now_s if self.first_s is None else self.first_s
            came_s = self.arrived_s[request.subject]
            if came_s >= self.first_s:  # else it waited for the first A/A check, and not for a device
                self.waits.append(self.now_s - came_s)
        self._note(took_s)
        record = renamed(self.records[request.purpose], request.experiment_id, request.subject, request.lane)
        assert record.lease is not None
        lease = record.lease.model_copy(update={"device_set": chosen.id, "devices": chosen.devices})
        moved = record.model_copy(update={"lease": lease, "attempt": request.attempt})
        future: Future[ExperimentRecord] = Future()
        heapq.heappush(self._running, (self.now_s + took_s, self._started, chosen.id, future, moved))
        return future

    def _note(self, took_s: float) -> None:
        """Note how much the sets were in use from the first ticket's start to this start."""
        if self.first_s is not None:
            self._in_use_s += took_s
            to_come_s = took_s + sum(ends_s - self.now_s for ends_s, *_ in self._running)
            self.window_s = self.now_s - self.first_s
            self.busy_s = self._in_use_s - to_come_s

    def stand_in_line(self, *, wanted: bool) -> None:
        """Go on to the next end of an experiment, or to the next ticket: serve has started what it could."""
        self._pass_real_time()
        ends_s = self._running[0][0] if self._running else float("inf")
        if self.arrivals and self.arrivals[0][0] <= ends_s:
            comes_s, arrive = self.arrivals.pop(0)
            self.now_s = max(self.now_s, comes_s)
            self.arrived_s[arrive()] = comes_s
        elif self._running:
            ends_s, _, device_set, future, record = heapq.heappop(self._running)
            self.now_s = max(self.now_s, ends_s)
            self._taken.remove(device_set)
            future.set_result(record)

    def _pass_real_time(self) -> None:
        cpu_s = time.process_time()
        self.now_s += cpu_s - self._cpu_s
        self._cpu_s = cpu_s

    def trouble(self) -> None:
        return None

    def late_records(self) -> tuple[ExperimentRecord, ...]:
        return ()

    def close(self) -> None:
        pass


class NoBuilders:
    """Builders whose candidates are built already."""

    def __init__(self, side: SideRef) -> None:
        self._side = side

    def submit(self, work: Callable[..., Any], *_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result((None, Built(self._side, ())) if work is build_ticket else None)
        return future


def _round(home: Path, sets: int) -> tuple[RoundFolder, dict[Purpose, ExperimentRecord]]:
    """Launch a round of so many device sets, and measure one real A/A check and one real ticket."""
    (home / "devices").mkdir()
    names = [f"s{number}" for number in range(sets)]
    for name in names:
        (home / "devices" / f"{name}.json").write_text("{}")
    repo = campaign_repo(
        home, LANES, device_sets=[{"id": name, "platform": "fixture", "devices": [name]} for name in names]
    )
    return serve_one_ticket(home, repo, aa_interval=sets)


def _simulate(
    folder: RoundFolder,
    records: dict[Purpose, ExperimentRecord],
    sets: int,
    tickets: int,
    *,
    load: float | None,
) -> Outcome:
    """Serve so many tickets, all there at once, or coming at a share of what the sets can take."""
    bench = open_bench(folder)
    gap_s = 0.0 if load is None else EXPERIMENT_S / sets / load
    with open_store(folder.database) as store:
        store.tickets.count()
        label = "backlog" if load is None else "paced"
        arrivals = [
            (
                number * gap_s,
                _arrival(store, bench.spec.round_digest, bench.plan.round_id, f"{label} {number}", number),
            )
            for number in range(tickets)
        ]
        pool = VirtualPool(bench.plan.device_sets, records, arrivals)
        if load is None:  # all there before serve begins
            for at_s, arrive in pool.arrivals:
                pool.arrived_s[arrive()] = at_s
            pool.arrivals = []
        side = SideRef(commit="1" * 40, tree="2" * 40, built="/nowhere", built_sha256="0" * 64)
        builders = cast("ThreadPoolExecutor", NoBuilders(side))
        server = Server(bench, store, pool, builders, lambda _: None, StopRequest())
        measured, began_s = store.tickets.count(state="measured"), time.process_time()
        pool.now_s, pool._cpu_s = 0.0, began_s
        outcome = server.run("idle")
        cpu_s = time.process_time() - began_s
        assert outcome.ended == "idle", outcome
        assert store.tickets.count(state="measured") - measured == tickets
    return Outcome(
        utilization=100 * pool.busy_s / (pool.window_s * sets),
        makespan_s=pool.now_s,
        waits=pool.waits,
        cpu_ms=1000 * cpu_s / tickets,
    )


def _arrival(store: RoundStore, digest: str, round_id: str, content: str, number: int) -> Callable[[], str]:
    lane = LANES[number % len(LANES)]

    def arrive() -> str:
        manifest = manifest_of(lane, content.encode())
        key = ticket_key(digest, lane, manifest.content_digest())
        name = ticket_name(round_id, lane, key)
        with store.transaction():
            store.tickets.add(
                key=key, ticket=name, manifest=manifest, intake_utc=now_utc(), provenance="scripted"
            )
        return name

    return arrive
