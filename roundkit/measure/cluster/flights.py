"""One experiment on its way: to a worker, and back as a record whatever becomes of the worker."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pydantic

from roundkit.core.clock import now_utc
from roundkit.core.errors import Refused
from roundkit.measure.broke import DeviceBusy, MeasurementBroke
from roundkit.measure.cluster import tasks
from roundkit.measure.cluster.arrival import arrival_problem, lost_record
from roundkit.measure.cluster.link import LOOK_S, Link
from roundkit.measure.cluster.shelf import Shelf
from roundkit.measure.cluster.spool import run_identity
from roundkit.measure.experiment import Progress
from roundkit.models.cluster import RemoteReply, RemoteRequest, TreeRef, TrialNote, WorkerState
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.measurement import MeasurementRequest
from roundkit.models.round_plan import DeviceSet
from roundkit.models.trial import Trial

if TYPE_CHECKING:
    from distributed import Client

PIECE_BYTES = 8 << 20
_SEND_TIMES = 3
_TASK_S = 60.0


class _Lost(Exception):
    """The worker or the scheduler is gone, or the worker took too long."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(detail)


@dataclass
class Flight:
    """An experiment between its request and its record.

    Attributes:
        request: What is measured.
        device_set: Where.
        worker: Address of the worker that has it.
        state: What the worker said of itself.
        progress: Called after each trial.
        delivered: Runs whose records have arrived, of all flights of a pool.
        future: The record, for whoever waits.
        stop: Set to end it at its next trial.
        generation: Of the connection that it was sent over; null until then.
    """

    request: MeasurementRequest
    device_set: DeviceSet
    worker: str
    state: WorkerState
    progress: Progress | None
    delivered: set[str]
    future: Future[ExperimentRecord] = field(default_factory=Future)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    generation: int | None = None
    lost: asyncio.Future[_Lost] | None = None

    def heard(self, note: TrialNote) -> None:
        """Hand what the worker tells of a trial to whoever watches."""
        if self.progress is not None and note.run == self.run:
            self.progress(note.done, note.planned, Trial.from_bytes(note.trial.encode(), place="note"))

    @property
    def run(self) -> str:
        """The identity of its run."""
        return run_identity(self.request.run_spec.round_digest, self.request.experiment_id)

    def lose(self, reason: str, detail: str) -> None:
        """Give it up; the first reason stays."""
        if self.lost is not None and not self.lost.done():
            self.lost.set_result(_Lost(reason, detail))


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
        return _record_of(reply, remote)
    except (_Lost, MeasurementBroke) as lost:
        return lost_record(flight.request, flight.state, started, lost.reason, lost.detail)
    except OSError as error:
        return lost_record(flight.request, flight.state, started, "host-error", str(error))


def _record_of(reply: RemoteReply, remote: RemoteRequest) -> ExperimentRecord:
    if reply.kind == "busy":
        raise DeviceBusy(reply.detail or "the device is held")
    if reply.record is None:
        raise _Lost(reply.reason or "worker-error", reply.detail or "the worker refused")
    problem = arrival_problem(reply.record, remote)
    if problem is not None:
        raise _Lost("record-wrong", problem)
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
    raise _Lost("worker-error", "the worker does not keep the trees that it is sent")


async def _measure(flight: Flight, link: Link, remote: RemoteRequest, bundle: bytes) -> RemoteReply:
    client = _client(link)
    # A name of its own: the scheduler may still know the answer to the last try.
    key = f"roundkit-{remote.run}-{secrets.token_hex(4)}"
    future = client.submit(
        tasks.measure,
        remote.to_bytes(),
        bundle,
        key=key,
        pure=False,
        retries=0,
        workers=[flight.worker],
        allow_other_workers=False,
        resources={resource(flight.device_set): 1},
    )
    stopper = asyncio.create_task(_stop_when_asked(flight, link, remote.run))
    try:
        limit_s = (remote.deadline_utc - now_utc()).total_seconds()
        data = await _result(flight, future, limit_s)
    finally:
        stopper.cancel()
        future.release()
    try:
        reply = RemoteReply.from_bytes(data, place="reply")
    except (Refused, pydantic.ValidationError) as error:
        raise _Lost("record-wrong", f"the worker's answer cannot be read: {error}") from error
    if reply.run != remote.run:
        raise _Lost("record-wrong", "the worker answered another request")
    if reply.kind == "record":
        flight.delivered.add(remote.run)
        with contextlib.suppress(OSError, TimeoutError, RuntimeError, _Lost):
            await forget(link, flight.worker, remote.run)
    return reply


async def _result(flight: Flight, future: Any, limit_s: float) -> bytes:
    """Wait for a task's bytes, for the loss of its worker, or for the limit."""
    assert flight.lost is not None
    waiting = asyncio.ensure_future(future.result())
    done, _ = await asyncio.wait(
        {waiting, flight.lost}, timeout=max(0.0, limit_s), return_when=asyncio.FIRST_COMPLETED
    )
    if waiting in done:
        return await _bytes_of(waiting, flight)
    waiting.cancel()
    with contextlib.suppress(Exception):
        await future.cancel()
    if flight.lost in done:
        raise flight.lost.result()
    raise _Lost("worker-slow", f"the worker did not answer within {limit_s:.0f} s")


async def _bytes_of(task: asyncio.Future[Any], flight: Flight) -> bytes:
    assert flight.lost is not None
    error = None if task.cancelled() else task.exception()
    if task.cancelled() or error is not None:
        # Whether it was the worker or the scheduler, the next look at the cluster tells.
        await asyncio.wait({flight.lost}, timeout=LOOK_S)
        if flight.lost.done():
            raise flight.lost.result()
        raise _Lost("worker-error", f"{type(error).__name__}: {error}" if error else "the task was forgotten")
    data = task.result()
    if not isinstance(data, bytes):
        raise _Lost("record-wrong", f"the worker answered with {type(data).__name__}")
    return data


async def _send(flight: Flight, link: Link, shelf: Shelf, tree: TreeRef, *, layer: bool) -> None:
    """Send a tree's bundle to the worker, in pieces."""
    offset, sender = 0, f"{id(shelf)}-{flight.request.experiment_id}"
    with shelf.bundle(tree.bundle_sha256).open("rb") as stream:
        while offset == 0 or offset < tree.bundle_bytes:
            piece = await asyncio.to_thread(stream.read, PIECE_BYTES)
            future = _client(link).submit(
                tasks.take_piece, sender, tree.to_bytes(), offset, piece, layer,
                pure=False, retries=0, workers=[flight.worker],
            )  # fmt: skip
            answer = await _result(flight, future, _TASK_S)
            future.release()
            if answer != tasks.DONE:
                reason, _, detail = answer.decode().partition(": ")
                raise _Lost(reason, detail)
            offset += len(piece)


async def _stop_when_asked(flight: Flight, link: Link, run: str) -> None:
    await flight.stop.wait()
    with contextlib.suppress(OSError, TimeoutError, RuntimeError, _Lost):
        await _ask(link, flight.worker, tasks.stop, run)


async def forget(link: Link, worker: str, run: str) -> None:
    """Tell a worker that its record has arrived."""
    await _ask(link, worker, tasks.forget, run)


async def late_record(link: Link, worker: str, run: str) -> ExperimentRecord | None:
    """Fetch the record of a run that had been given up; None where there is none to be read."""
    data = await _ask(link, worker, tasks.collect, run)
    try:
        return RemoteReply.from_bytes(data, place="reply").record if data else None
    except (Refused, pydantic.ValidationError):
        return None


async def _ask(link: Link, worker: str, task: Callable[..., Any], *arguments: object) -> bytes:
    future = _client(link).submit(task, *arguments, pure=False, retries=0, workers=[worker])
    try:
        answer = await asyncio.wait_for(future.result(), _TASK_S)
    finally:
        future.release()
    return answer if isinstance(answer, bytes) else b""


def resource(device_set: DeviceSet) -> str:
    """Return the name under which Dask knows a device set."""
    return f"roundkit-{device_set.id}"


def _client(link: Link) -> Client:
    if link.client is None:
        raise _Lost("scheduler-lost", link.trouble or "the scheduler was lost")
    return link.client
