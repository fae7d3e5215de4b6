"""One experiment on its way: to a worker, and back as a record whatever becomes of the worker."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pydantic

from roundkit.core.clock import Deadline, now_utc
from roundkit.core.errors import Refused
from roundkit.measure.broke import DeviceBusy, MeasurementBroke, host_reason
from roundkit.measure.cluster import tasks
from roundkit.measure.cluster.arrival import arrival_problem, lost_record
from roundkit.measure.cluster.asking import TASK_S, Lost, hand, resource, stop, wait_on
from roundkit.measure.cluster.link import LOOK_S, REFRESH_S, Link
from roundkit.measure.cluster.shelf import Shelf
from roundkit.measure.cluster.spool import run_identity
from roundkit.measure.experiment import Progress
from roundkit.models.cluster import OfferedSet, RemoteReply, RemoteRequest, TreeRef, TrialNote, WorkerState
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.measurement import MeasurementRequest
from roundkit.models.round_plan import DeviceSet
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import Trial

RecordCheck = Callable[[ExperimentRecord, RunSpec], str | None]
"""Says what is wrong with a record in itself, under how its trials had to run; None where nothing is."""

PIECE_BYTES = 8 << 20
_SEND_TIMES = 3
_ASK_TIMES = 3


@dataclass
class Flight:
    """An experiment between its request and its record.

    Attributes:
        request: What is measured.
        device_set: Where.
        worker: Address of the worker that has it.
        store_sha256: Which store asks.
        state: What the worker said of itself.
        progress: Called after each trial.
        check: Says what is wrong with a record in itself.
        delivered: Runs whose records have arrived, of all flights of a pool.
        future: The record, for whoever waits.
        stop: Set to end it at its next trial.
        generation: Of the connection that it was sent over; null until then.
    """

    request: MeasurementRequest
    device_set: DeviceSet
    worker: str
    store_sha256: str
    state: WorkerState
    progress: Progress | None
    check: RecordCheck
    delivered: set[str]
    future: Future[ExperimentRecord] = field(default_factory=Future)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    generation: int | None = None
    lost: asyncio.Future[Lost] | None = None

    def heard(self, note: TrialNote) -> None:
        """Hand what the worker tells of a trial to whoever watches."""
        if self.progress is not None and note.run == self.run:
            self.progress(note.done, note.planned, Trial.from_bytes(note.trial.encode(), place="note"))

    @property
    def run(self) -> str:
        """The identity of its run."""
        plan_digest = self.request.run_spec.round_digest
        return run_identity(self.store_sha256, plan_digest, self.request.experiment_id)

    def place(self, state: WorkerState | None) -> OfferedSet | None:
        """Return how the worker says that the device set is now; None where it says nothing of it."""
        sets = () if state is None else state.sets
        return next((one for one in sets if one.device_set.id == self.device_set.id), None)

    def lose(self, reason: str, detail: str) -> None:
        """Give it up; the first reason stays."""
        if self.lost is not None and not self.lost.done():
            self.lost.set_result(Lost(reason, detail))


def time_limit_s(request: MeasurementRequest) -> float:
    """Return how long an experiment may take at most, by the plan's own limits: twice every trial's."""
    spec = request.run_spec
    trial_s = spec.benchmark.timeout_s + (spec.validator.timeout_s if spec.validator else 0.0)
    return 2 * trial_s * len(request.schedule)


async def fly(flight: Flight, link: Link, shelf: Shelf) -> ExperimentRecord:
    """Have a worker run an experiment, and return its record, or one that says what was lost.

    Raises:
        DeviceBusy: somebody outside the cluster has the device; nothing was started.
    """
    started = now_utc()
    flight.lost = asyncio.get_running_loop().create_future()
    flight.generation = link.generation
    try:
        deadline = started + timedelta(seconds=time_limit_s(flight.request))
        remote, bundle = await asyncio.to_thread(shelf.pack, flight.request, flight.device_set, deadline)
        reply = await _exchange(flight, link, shelf, remote, bundle)
        return _record_of(reply, remote, flight)
    except (Lost, MeasurementBroke) as lost:
        return lost_record(flight.request, flight.state, started, lost.reason, lost.detail)
    except OSError as error:
        return lost_record(flight.request, flight.state, started, host_reason(error), str(error))
    except DeviceBusy:
        raise
    except Exception as error:  # serve outlives whatever Dask makes of a connection that breaks
        detail = f"{type(error).__name__}: {error}"
        return lost_record(flight.request, flight.state, started, "worker-error", detail)


def _record_of(reply: RemoteReply, remote: RemoteRequest, flight: Flight) -> ExperimentRecord:
    if reply.kind == "busy":
        raise DeviceBusy(reply.detail or "the device is held")
    if reply.record is None:
        raise Lost(reply.reason or "worker-error", reply.detail or "the worker refused")
    problem = arrival_problem(reply.record, remote, flight.state) or flight.check(
        reply.record, remote.request.run_spec
    )
    if problem is not None:
        raise Lost("record-wrong", f"{problem}; the record was not kept (sha256 {reply.record.digest()})")
    return reply.record


async def _exchange(
    flight: Flight, link: Link, shelf: Shelf, remote: RemoteRequest, bundle: bytes
) -> RemoteReply:
    for _ in range(_SEND_TIMES):
        reply = await _measure(flight, link, remote, bundle)
        if reply.kind != "missing":
            return reply
        for tree in remote.kept:
            if tree.bundle_sha256 in reply.missing:
                layer = remote.base is not None and tree == remote.baseline
                await _send(flight, link, shelf, tree, layer=layer)
    raise Lost("worker-error", "the worker does not keep the trees that it is sent")


async def _measure(flight: Flight, link: Link, remote: RemoteRequest, bundle: bytes) -> RemoteReply:
    offset_s = await _clock_offset_s(flight, link)
    sent, limit_s = now_utc(), time_limit_s(flight.request)
    deadline = sent + timedelta(seconds=limit_s)
    remote = remote.model_copy(
        update={"sent_utc": sent, "clock_offset_s": offset_s, "deadline_utc": deadline}
    )
    # A name of its own: the scheduler may still know the answer to the last try.
    key = f"roundkit-{remote.run}-{secrets.token_hex(4)}"
    wanted = {resource(flight.device_set): 1}
    future = hand(
        link, flight.worker, tasks.measure, remote.to_bytes(), bundle,
        key=key, allow_other_workers=False, resources=wanted,
    )  # fmt: skip
    stopper = asyncio.create_task(_stop_when_asked(flight, link))
    watcher = asyncio.create_task(_lose_when_slow(flight, link, limit_s))
    try:
        data = await _result(flight, future)
    finally:
        stopper.cancel()
        watcher.cancel()
        future.release()
    try:
        reply = RemoteReply.from_bytes(data, place="reply")
    except (Refused, pydantic.ValidationError) as error:
        raise Lost("record-wrong", f"the worker's answer cannot be read: {error}") from error
    if reply.run != remote.run:
        raise Lost("record-wrong", "the worker answered another request")
    if reply.kind == "record":
        flight.delivered.add(remote.run)
    return reply


async def _clock_offset_s(flight: Flight, link: Link) -> float:
    """Return what is added to the worker's clock to have this one's; 0 where no difference shows.

    A clock that is set while it is asked for shows one where there is none; so one that shows is asked again.
    """
    least = 0.0
    for ask in range(_ASK_TIMES):
        found = await _asked_offset_s(flight, link)
        if found == 0.0:
            return 0.0
        least = found if ask == 0 else min(least, found, key=abs)
    return least


async def _asked_offset_s(flight: Flight, link: Link) -> float:
    asked = now_utc()
    future = hand(link, flight.worker, tasks.clock)
    answer = await _result(flight, future, TASK_S)
    answered = now_utc()
    future.release()
    try:
        told = datetime.fromisoformat(answer.decode())
        return 0.0 if asked <= told <= answered else (asked - told).total_seconds()
    except (ValueError, TypeError) as error:
        raise Lost("record-wrong", "the worker did not tell its time") from error


async def _result(flight: Flight, future: Any, limit_s: float | None = None) -> bytes:
    """Wait for a task's bytes, for the loss of its worker, or for the limit where there is one."""
    assert flight.lost is not None
    waiting = asyncio.ensure_future(future.result())
    done, _ = await asyncio.wait({waiting, flight.lost}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    if waiting in done:
        return await _bytes_of(waiting, flight)
    waiting.cancel()
    with contextlib.suppress(Exception):
        await future.cancel()
    if flight.lost in done:
        raise flight.lost.result()
    raise Lost("worker-slow", f"the worker did not answer within {limit_s:.0f} s")


async def _bytes_of(task: asyncio.Future[Any], flight: Flight) -> bytes:
    assert flight.lost is not None
    error = None if task.cancelled() else task.exception()
    if task.cancelled() or error is not None:
        # Whether it was the worker or the scheduler, the next look at the cluster tells.
        await asyncio.wait({flight.lost}, timeout=LOOK_S)
        if flight.lost.done():
            raise flight.lost.result()
        raise Lost("worker-error", f"{type(error).__name__}: {error}" if error else "the task was forgotten")
    data = task.result()
    if not isinstance(data, bytes):
        raise Lost("record-wrong", f"the worker answered with {type(data).__name__}")
    return data


async def _send(flight: Flight, link: Link, shelf: Shelf, tree: TreeRef, *, layer: bool) -> None:
    """Send a tree's bundle to the worker, in pieces."""
    offset, sender = 0, f"{shelf.name}-{flight.request.experiment_id}"
    with shelf.bundle(tree.bundle_sha256).open("rb") as stream:
        while offset == 0 or offset < tree.bundle_bytes:
            if flight.stop.is_set():
                raise Lost("interrupted", "its trees were still on their way to the worker")
            piece = await asyncio.to_thread(stream.read, PIECE_BYTES)
            piece_of = (sender, tree.to_bytes(), offset, piece, layer, 2 * TASK_S)
            future = hand(link, flight.worker, tasks.take_piece, *piece_of)
            answer = await _result(flight, future, TASK_S)
            future.release()
            if answer != tasks.DONE:
                reason, _, detail = answer.decode(errors="replace").partition(": ")
                raise Lost(reason, detail)
            offset += len(piece)


async def _stop_when_asked(flight: Flight, link: Link) -> None:
    await flight.stop.wait()
    with contextlib.suppress(OSError, TimeoutError, RuntimeError, Lost):
        if not await stop(link, flight.worker, flight.run):
            flight.lose("interrupted", "it still waited for its turn at the worker")


async def _lose_when_slow(flight: Flight, link: Link, limit_s: float) -> None:
    """Give a worker up that takes too long; the time in which others have the devices does not count."""
    left_s, told, last = limit_s, Deadline.after(limit_s), time.monotonic()
    while left_s > 0:
        await asyncio.sleep(REFRESH_S)
        now = time.monotonic()
        passed_s, last = now - last, now
        place = flight.place(link.workers.get(flight.worker))
        if place is None or not _others_have(place, flight.run):
            left_s -= passed_s
        elif place.run == flight.run and told.remaining_s() < limit_s / 2:
            told = Deadline.after(limit_s)
            with contextlib.suppress(OSError, TimeoutError, RuntimeError, Lost):
                await wait_on(link, flight.worker, flight.run, limit_s)
    flight.lose("worker-slow", f"the worker did not answer within {limit_s:.0f} s")


def _others_have(place: OfferedSet, run: str) -> bool:
    return place.waits if place.run == run else place.run is not None
