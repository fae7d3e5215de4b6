"""What a coordinator asks of a worker beside measuring: to stop, to wait on, to hand over, to forget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pydantic

from roundkit.core.errors import Refused
from roundkit.measure.cluster import tasks
from roundkit.measure.cluster.link import Link
from roundkit.models.cluster import RemoteReply
from roundkit.models.round_plan import DeviceSet

if TYPE_CHECKING:
    from distributed import Client, Future

TASK_S = 60.0
"""A worker that does not answer a small question within so many seconds is lost."""


class Lost(Exception):
    """The worker or the scheduler is gone, or the worker took too long."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(detail)


def client_of(link: Link) -> Client:
    """Return the client of a connection.

    Raises:
        Lost: ``scheduler-lost``: there is none.
    """
    if link.client is None:
        raise Lost("scheduler-lost", link.trouble or "the scheduler was lost")
    return link.client


def hand(link: Link, worker: str, task: Callable[..., Any], *arguments: object, **how: object) -> Future[Any]:
    """Hand a task to one worker, to be run once; return its answer to come.

    Args:
        link: The connection.
        worker: Address of the worker.
        task: One of ``tasks``.
        arguments: Its arguments.
        how: What else Dask is told of it.

    Raises:
        Lost: ``scheduler-lost``.
    """
    import dask

    # The largest thing that a task takes is a candidate, which is read once: Dask's advice is not for that.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):
        return client_of(link).submit(task, *arguments, pure=False, retries=0, workers=[worker], **how)


def resource(device_set: DeviceSet) -> str:
    """Return the name under which Dask knows a device set."""
    return f"roundkit-{device_set.id}"


async def stop(link: Link, worker: str, run: str) -> bool:
    """Have a run end at its next trial; say whether the worker had begun it. Else it never does."""
    return await _ask(link, worker, tasks.stop, run) == tasks.DONE


async def wait_on(link: Link, worker: str, run: str, seconds: float) -> None:
    """Tell a worker that a run is still wanted, though others have its devices.

    Args:
        link: The connection.
        worker: Address of the worker.
        run: The run.
        seconds: How long it may wait for them from now.
    """
    await _ask(link, worker, tasks.wait_on, run, seconds)


async def forget(link: Link, worker: str, run: str) -> None:
    """Tell a worker that its record has arrived."""
    await _ask(link, worker, tasks.forget, run)


async def late_reply(link: Link, worker: str, run: str) -> RemoteReply | None:
    """Fetch the reply of a run that had been given up; None where there is none to be read."""
    data = await _ask(link, worker, tasks.collect, run)
    try:
        return RemoteReply.from_bytes(data, place="reply") if data else None
    except (Refused, pydantic.ValidationError):
        return None


async def _ask(link: Link, worker: str, task: Callable[..., Any], *arguments: object) -> bytes:
    future = hand(link, worker, task, *arguments)
    try:
        answer = await asyncio.wait_for(future.result(), TASK_S)
    finally:
        future.release()
    return answer if isinstance(answer, bytes) else b""
