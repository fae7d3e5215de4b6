"""Where experiments run: the interface that a cluster engine implements as well, and the local pool."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from roundkit.host.devices import lease_names
from roundkit.host.lease import holders, is_next, wait_in_line
from roundkit.host.turns import Turn
from roundkit.measure.broke import DeviceBusy
from roundkit.measure.experiment import Progress, run_experiment
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.measurement import MeasurementRequest
from roundkit.models.round_plan import DeviceSet


class DevicePool(Protocol):
    """Takes frozen measurement requests and gives their records back."""

    def free_sets(self) -> tuple[DeviceSet, ...]:
        """Return the device sets that could take an experiment now."""
        ...

    def submit(
        self, request: MeasurementRequest, *, progress: Progress | None = None
    ) -> Future[ExperimentRecord]:
        """Start an experiment on a free device set that the request may use.

        The future raises :class:`DeviceBusy` where somebody outside the pool was faster; the request is
        then as good as never submitted.

        Raises:
            DeviceBusy: no device set that the request may use is free.
        """
        ...

    def stand_in_line(self, *, wanted: bool) -> None:
        """Say whether device sets that others hold are wanted, so that everybody gets a turn at them."""
        ...

    def trouble(self) -> str | None:
        """Say why nothing can be measured now; None where nothing is in the way. It may end by itself."""
        ...

    def late_records(self) -> tuple[ExperimentRecord, ...]:
        """Return, once each, the records of experiments that had been given up and ended all the same.

        Who asks again has kept what there was before.
        """
        ...

    def close(self) -> None:
        """End what runs at its next trial, as interrupted, and wait for it."""
        ...


@dataclass(frozen=True)
class _Job:
    request: MeasurementRequest
    progress: Progress | None
    turn: Turn | None
    future: Future[ExperimentRecord]


class LocalPool:
    """One thread for each device set of this host, for as long as the pool lives.

    A confined command dies with the *thread* that started it, so no thread may end before its work.

    Args:
        device_sets: The sets that this pool may use.
        lease_root: Where this host keeps leases.
    """

    def __init__(self, device_sets: Sequence[DeviceSet], *, lease_root: Path) -> None:
        self._sets = tuple(one for one in device_sets if one.machine is None)  # others are a worker's
        self._lease_root = lease_root
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._turns: dict[str, Turn] = {}
        self._idle = {device_set.id for device_set in self._sets}
        self._jobs: dict[str, queue.SimpleQueue[_Job | None]] = {
            device_set.id: queue.SimpleQueue() for device_set in self._sets
        }
        self._threads = [
            threading.Thread(
                target=self._serve, args=(device_set,), name=f"devices-{device_set.id}", daemon=True
            )
            for device_set in self._sets
        ]
        for thread in self._threads:
            thread.start()

    def free_sets(self) -> tuple[DeviceSet, ...]:
        """Return the sets that no experiment of this pool and no other holder on this host uses now."""
        held = {holder.device for holder in holders(self._lease_root)}
        with self._lock:
            idle = set(self._idle)
        return tuple(
            device_set
            for device_set in self._sets
            if device_set.id in idle and self._is_free(device_set, held)
        )

    def _is_free(self, device_set: DeviceSet, held: set[str]) -> bool:
        names = lease_names(device_set.platform, device_set.devices)
        turn = self._turns.get(device_set.id)
        return held.isdisjoint(names) and is_next(names, root=self._lease_root, turn=turn)

    def submit(
        self, request: MeasurementRequest, *, progress: Progress | None = None
    ) -> Future[ExperimentRecord]:
        """Start an experiment on an idle device set that the request may use.

        Raises:
            DeviceBusy: every such set is in use by this pool, or the pool is closed.
        """
        free = {one.id for one in self.free_sets()}
        with self._lock:
            idle = [one for one in request.device_sets if one.id in self._idle]
            # A set that somebody else holds must not be tried again and again while another one is free.
            chosen = min(idle, key=lambda one: one.id not in free, default=None)
            if chosen is None or self._stop.is_set():
                raise DeviceBusy(f"no device set is free for {request.experiment_id}")
            self._idle.discard(chosen.id)
            job = _Job(request, progress, self._turns.pop(chosen.id, None), Future())
            job.future.set_running_or_notify_cancel()
            self._jobs[chosen.id].put(job)
        return job.future

    def stand_in_line(self, *, wanted: bool) -> None:
        """Stand in line for each idle set that others hold or wait for, or leave every line."""
        with self._lock:
            idle = set(self._idle)
        for device_set in self._sets if wanted else ():
            if device_set.id in idle and device_set.id not in self._turns:
                names = lease_names(device_set.platform, device_set.devices)
                if not self._is_free(device_set, {holder.device for holder in holders(self._lease_root)}):
                    self._turns[device_set.id] = wait_in_line(names, root=self._lease_root)
        for name, turn in list(self._turns.items()):
            if wanted and name in idle:
                turn.renew()
            else:
                self._turns.pop(name).leave()

    def trouble(self) -> str | None:
        """Return None: nothing stands between this pool and its host."""
        return None

    def late_records(self) -> tuple[ExperimentRecord, ...]:
        """Return nothing: an experiment of this pool ends once."""
        return ()

    def close(self) -> None:
        """End what runs at its next trial, as interrupted, and wait for it; a second call does nothing."""
        with self._lock:
            self._stop.set()
        self.stand_in_line(wanted=False)
        for jobs in self._jobs.values():
            jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self, device_set: DeviceSet) -> None:
        while (job := self._jobs[device_set.id].get()) is not None:
            request = job.request.model_copy(update={"device_sets": (device_set,)})
            try:
                record = run_experiment(
                    request,
                    lease_root=self._lease_root,
                    progress=job.progress,
                    should_stop=self._stop.is_set,
                    turn=job.turn,
                )
            except BaseException as error:  # handed to whoever waits for the future
                if job.turn is not None:  # somebody was faster; the place in line is not lost by that
                    self._turns[device_set.id] = job.turn
                self._release(device_set)
                job.future.set_exception(error)
            else:
                self._release(device_set)
                job.future.set_result(record)

    def _release(self, device_set: DeviceSet) -> None:
        """Make the set idle before the future is done, so that who waits for it can submit again."""
        with self._lock:
            self._idle.add(device_set.id)
