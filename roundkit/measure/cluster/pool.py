"""The device pool of a Dask cluster: experiments fan out to workers, their records come back whole."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from roundkit.measure.broke import DeviceBusy
from roundkit.measure.cluster.extra import require
from roundkit.measure.cluster.flights import Flight, fly, forget, late_record
from roundkit.measure.cluster.link import Link
from roundkit.measure.cluster.security import check_address
from roundkit.measure.cluster.shelf import Shelf
from roundkit.measure.cluster.tasks import notes_topic
from roundkit.measure.experiment import Progress
from roundkit.models.cluster import FinishedRun, TrialNote
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.measurement import MeasurementRequest
from roundkit.models.round_plan import DeviceSet

_CLOSE_S = 5.0
_FIRST_LOOK_S = 5.0


class DaskPool:
    """Device sets of every worker that a scheduler has, as far as a plan names them.

    Each device set of each worker takes at most one experiment of this pool at a time. It may wait there for
    another round's, so that rounds on one cluster take turns.

    Args:
        device_sets: The sets that this pool may use, as the plan has them.
        plan_digest: The frozen plan; late records of its experiments are collected.
        scheduler: Address of the scheduler.
        tls: Folder with certificates; None without TLS, which only loopback may do.

    Raises:
        Refused: ``missing-extra``, ``scheduler-address``, ``tls-needed``, ``tls-files``.
    """

    def __init__(
        self, device_sets: Sequence[DeviceSet], *, plan_digest: str, scheduler: str, tls: Path | None = None
    ) -> None:
        require("distributed")
        check_address(scheduler, tls, place="--scheduler")
        self._sets = tuple(device_sets)
        self._plan_digest = plan_digest
        self._shelf = Shelf()
        self._lock = threading.Lock()
        self._flights: dict[str, Flight] = {}
        self._late: list[ExperimentRecord] = []
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._link = Link(
            scheduler, tls, topic=notes_topic(plan_digest), on_note=self._heard, on_change=self._looked
        )
        self._delivered: set[str] = set()
        self._collecting: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="cluster", daemon=True)
        self._seen = threading.Event()
        self._thread.start()
        self._seen.wait(_FIRST_LOOK_S)  # so that a cluster that is there is not told as missing first

    def free_sets(self) -> tuple[DeviceSet, ...]:
        """Return the plan's sets that a worker offers and no experiment of this pool is on, one for each."""
        with self._lock:
            return tuple(device_set for device_set, _, _ in self._places())

    def stand_in_line(self, *, wanted: bool) -> None:
        """Do nothing: an experiment waits for its turn at the worker that it was sent to."""

    def trouble(self) -> str | None:
        """Say why nothing can be measured now; None where nothing is in the way. It may end by itself."""
        if self._link.trouble is not None:
            return self._link.trouble
        offered = {one.device_set.id for state in self._link.workers.values() for one in state.sets}
        if offered.isdisjoint(one.id for one in self._sets):
            return f"no worker offers a device set of the plan; those connected offer {sorted(offered)}"
        return None

    def late_records(self) -> tuple[ExperimentRecord, ...]:
        """Return, once each, the records of experiments that had been given up and ended all the same."""
        with self._lock:
            late, self._late = tuple(self._late), []
        return late

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
            places = [place for place in self._places() if place[0].id in allowed]
            # In the request's order of preference, but a set that somebody measures on only if it must be.
            order = [one.id for one in request.device_sets]
            chosen = min(places, key=lambda place: (place[2], order.index(place[0].id)), default=None)
            if chosen is None or self._closed:
                raise DeviceBusy(f"no worker has a free device set for {request.experiment_id}")
            device_set, worker, _ = chosen
            flight = Flight(
                request, device_set, worker, self._link.workers[worker], progress, self._delivered
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

    def _places(self) -> list[tuple[DeviceSet, str, bool]]:
        """Return each device set, worker and whether somebody measures there, without this pool's own."""
        taken = Counter((flight.worker, flight.device_set.id) for flight in self._flights.values())
        places = []
        for worker, state in self._link.workers.items():
            for offered in state.sets:
                own = next((one for one in self._sets if one.is_same_as(offered.device_set)), None)
                if own is not None and not taken[worker, own.id] and offered.problem is None:
                    places.append((own, worker, offered.held))
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
                if finished.plan_digest == self._plan_digest:
                    self._collect(worker, finished)

    def _collect(self, worker: str, finished: FinishedRun) -> None:
        if finished.experiment_id in self._flights or finished.run in self._collecting:
            return
        self._collecting.add(finished.run)
        self._start(self._fetch(worker, finished))

    async def _fetch(self, worker: str, finished: FinishedRun) -> None:
        try:
            record = await late_record(self._link, worker, finished.run)
            if record is not None and finished.run not in self._delivered:
                with self._lock:
                    self._late.append(record)
                self._delivered.add(finished.run)
            await forget(self._link, worker, finished.run)
        except (OSError, TimeoutError, RuntimeError, asyncio.CancelledError):
            pass  # the worker says again that it has it
        finally:
            self._collecting.discard(finished.run)

    async def _end(self) -> None:
        for task in list(self._tasks):
            if task is not asyncio.current_task():
                task.cancel()
        await self._link.close()
