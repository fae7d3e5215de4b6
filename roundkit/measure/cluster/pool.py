"""The device pool of a Dask cluster: experiments fan out to workers, their records come back whole."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

from roundkit.measure.broke import DeviceBusy
from roundkit.measure.cluster.arrival import late_problem
from roundkit.measure.cluster.asking import Lost, forget, late_reply
from roundkit.measure.cluster.extra import require
from roundkit.measure.cluster.flights import Flight, RecordCheck, fly
from roundkit.measure.cluster.link import Link
from roundkit.measure.cluster.security import check_address
from roundkit.measure.cluster.sets import set_problem, shared_names
from roundkit.measure.cluster.shelf import Shelf
from roundkit.measure.cluster.tasks import notes_topic
from roundkit.measure.experiment import Progress
from roundkit.models.cluster import FinishedRun, TrialNote, WorkerState
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.measurement import MeasurementRequest
from roundkit.models.round_plan import DeviceSet
from roundkit.models.run_spec import RunSpec

_CLOSE_S = 12.0
_FORGET_S = 3.0
_CANCEL_S = 4.0
_FIRST_LOOK_S = 5.0


def nothing_wrong(record: ExperimentRecord, spec: RunSpec) -> None:
    """Find nothing wrong with a record."""


class _Place(NamedTuple):
    """A device set of a worker, what the worker said of itself, and whether somebody measures there."""

    device_set: DeviceSet
    worker: str
    state: WorkerState
    held: bool


class DaskPool:
    """Device sets of every worker that a scheduler has, as far as a plan names them.

    Each device set of each worker takes at most one experiment of this pool at a time. It may wait there for
    another round's, so that rounds on one cluster take turns.

    Args:
        device_sets: The sets that this pool may use, as the plan has them.
        plan_digest: The frozen plan; late records of its experiments are collected.
        store_sha256: Which store asks: to the workers, a copied round directory is another round.
        scheduler: Address of the scheduler.
        scratch: Folder of this round, for bundles while they are sent.
        tls: Folder with certificates; None without TLS, which only loopback may do.
        check: Says what is wrong with a record that has come back, in itself.
        missing: Says why workers are missing, where it is known; None where nothing is known.

    Raises:
        Refused: ``missing-extra``, ``scheduler-address``, ``tls-needed``, ``tls-files``, ``tls-expired``.
    """

    def __init__(
        self,
        device_sets: Sequence[DeviceSet],
        *,
        plan_digest: str,
        store_sha256: str,
        scheduler: str,
        scratch: Path,
        tls: Path | None = None,
        check: RecordCheck = nothing_wrong,
        missing: Callable[[], str | None] = lambda: None,
    ) -> None:
        require("distributed")
        check_address(scheduler, tls, place="--scheduler")
        self._sets = tuple(device_sets)
        self._round = store_sha256, plan_digest
        self._check, self._missing = check, missing
        self._shelf = Shelf(scratch, store_sha256)
        self._lock = threading.Lock()
        self._flights: dict[str, Flight] = {}
        self._late: dict[str, ExperimentRecord] = {}
        self._handed: set[str] = set()
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._link = Link(
            scheduler, tls, topic=notes_topic(plan_digest), on_note=self._heard, on_change=self._looked
        )
        self._delivered: set[str] = set()
        self._collecting: set[str] = set()
        self._passed_over: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._forgetting: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="cluster", daemon=True)
        self._seen = threading.Event()
        self._thread.start()
        self._seen.wait(_FIRST_LOOK_S)  # so that a cluster that is there is not told as missing first

    def free_sets(self) -> tuple[DeviceSet, ...]:
        """Return the plan's sets that a worker offers and no experiment of this pool is on, one for each."""
        with self._lock:
            return tuple(place.device_set for place in self._places())

    def stand_in_line(self, *, wanted: bool) -> None:
        """Do nothing: an experiment waits for its turn at the worker that it was sent to."""

    def trouble(self) -> str | None:
        """Say why nothing can be measured now; None where nothing is in the way. It may end by itself."""
        if self._link.trouble is not None:
            return "; ".join(filter(None, (self._link.trouble, self._missing())))
        workers = self._link.workers
        seen = [(at, one) for at, state in workers.items() for one in state.sets]
        wanted = {one.id: one for one in self._sets}
        if wanted.keys().isdisjoint(one.device_set.id for _, one in seen):
            offered = ", ".join(sorted({one.device_set.id for _, one in seen}))
            return f"no worker offers a device set of the plan ({', '.join(wanted)}), but only {offered}"
        shared, problems = shared_names(workers.values()), []
        for at, one in seen:
            if one.device_set.id in wanted:
                problem = set_problem(wanted[one.device_set.id], one, shared)
                if problem is None:
                    return None
                problems.append(f"{one.device_set.id} of {at}: {problem}")
        return "no device set can measure now: " + "; ".join(problems)

    def late_records(self) -> tuple[ExperimentRecord, ...]:
        """Return, once each, the records of experiments that had been given up and ended all the same.

        Who asks again has kept what there was before; only then the workers forget it.
        """
        with self._lock:
            self._delivered |= self._handed
            late, self._late, self._handed = self._late, {}, set(self._late)
        return tuple(late.values())

    def submit(
        self, request: MeasurementRequest, *, progress: Progress | None = None
    ) -> Future[ExperimentRecord]:
        """Start an experiment on a worker's device set that the request may use.

        The future's record is ``infrastructure`` where the worker or the scheduler was lost.

        Raises:
            DeviceBusy: there is no such set, or the pool is closed.
        """
        allowed = {one.id for one in request.device_sets}
        with self._lock:
            places = [place for place in self._places() if place.device_set.id in allowed]
            # In the request's order of preference, but a set that somebody measures on only if it must be.
            order = [one.id for one in request.device_sets]
            chosen = min(places, key=lambda one: (one.held, order.index(one.device_set.id)), default=None)
            if chosen is None or self._closed:
                raise DeviceBusy(
                    self.trouble() or f"no worker has a free device set for {request.experiment_id}"
                )
            flight = Flight(
                request,
                chosen.device_set,
                chosen.worker,
                self._round[0],
                chosen.state,
                progress,
                self._check,
                self._delivered,
            )
            self._flights[request.experiment_id] = flight
        flight.future.set_running_or_notify_cancel()
        self._start(self._fly(flight))
        return flight.future

    def close(self) -> None:
        """End what runs at its next trial, as interrupted, and wait for it; a second call does nothing."""
        with self._lock:
            self._closed, already = True, self._closed
            flights = list(self._flights.values())
        if already:
            return
        for flight in flights:
            self._loop.call_soon_threadsafe(flight.stop.set)
        for flight in flights:
            flight.future.exception()
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(timeout=_CLOSE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._shelf.close()

    def _places(self) -> list[_Place]:
        """Return where this pool could measure now: without what it measures on already."""
        taken = Counter((flight.worker, flight.device_set.id) for flight in self._flights.values())
        own_sets, workers = {one.id: one for one in self._sets}, self._link.workers
        shared = shared_names(workers.values())
        places = []
        for worker, state in workers.items():
            for offered in state.sets:
                own = own_sets.get(offered.device_set.id)
                if own is None or taken[worker, own.id]:
                    continue
                if set_problem(own, offered, shared) is None:
                    places.append(_Place(own, worker, state, offered.held))
        return places

    # -- in the loop's thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._start(self._link.keep())
        self._loop.run_forever()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        def begin() -> None:
            task = self._loop.create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._loop.call_soon_threadsafe(begin)

    async def _fly(self, flight: Flight) -> None:
        try:
            record = await fly(flight, self._link, self._shelf)
        except BaseException as error:  # handed to whoever waits for the future
            self._land(flight)
            flight.future.set_exception(error)
        else:
            self._land(flight)
            flight.future.set_result(record)
        # Not before: a worker that goes away right now would hold up its own record.
        if flight.run in self._delivered:
            self._forgetting.add(task := self._loop.create_task(self._forget(flight)))
            task.add_done_callback(self._forgetting.discard)

    async def _forget(self, flight: Flight) -> None:
        with contextlib.suppress(OSError, TimeoutError, RuntimeError, Lost):
            await forget(self._link, flight.worker, flight.run)

    def _land(self, flight: Flight) -> None:
        """Make the place free before the future is done, so that who waits for it can submit again."""
        with self._lock:
            del self._flights[flight.request.experiment_id]

    def _heard(self, note: TrialNote) -> None:
        for flight in list(self._flights.values()):
            flight.heard(note)

    def _looked(self) -> None:
        """After each look at the cluster: tell flights what they lost, collect what was given up."""
        self._seen.set()
        for flight in list(self._flights.values()):
            if flight.generation is not None and flight.generation != self._link.generation:
                flight.lose("scheduler-lost", "the scheduler was lost while this was measured")
            elif flight.generation is not None and flight.worker not in self._link.workers:
                flight.lose("worker-lost", "the worker was lost while this was measured")
        for worker, state in self._link.workers.items():
            for finished in state.finished:
                if (finished.store_sha256, finished.plan_digest) == self._round:
                    self._collect(worker, finished)

    def _collect(self, worker: str, finished: FinishedRun) -> None:
        passed_over = self._collecting | self._passed_over
        if finished.experiment_id in self._flights or finished.run in passed_over:
            return
        with self._lock:
            if finished.run in self._late or finished.run in self._handed:
                return
        self._collecting.add(finished.run)
        self._start(self._fetch(worker, finished))

    async def _fetch(self, worker: str, finished: FinishedRun) -> None:
        try:
            if finished.run not in self._delivered:
                reply = await late_reply(self._link, worker, finished.run)
                if reply is None or late_problem(reply, finished) is not None:
                    # It stays where it is until its time is over, and the worker says so then.
                    self._passed_over.add(finished.run)
                    return
                if reply.record is not None:
                    with self._lock:
                        self._late[finished.run] = reply.record
                    return
            await forget(self._link, worker, finished.run)
        except (OSError, TimeoutError, RuntimeError, Lost, asyncio.CancelledError):
            pass  # the worker says again that it has it
        finally:
            self._collecting.discard(finished.run)

    async def _end(self) -> None:
        if self._forgetting:
            await asyncio.wait(self._forgetting, timeout=_FORGET_S)
        running = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_CANCEL_S)
        await self._link.close()
