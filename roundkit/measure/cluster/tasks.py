"""What a coordinator has a worker do, as functions that Dask calls: bytes in, bytes out."""

from __future__ import annotations

import asyncio
from functools import partial

import pydantic

from roundkit.core.clock import format_utc, now_utc
from roundkit.core.errors import Refused
from roundkit.measure.broke import MeasurementBroke, host_reason
from roundkit.measure.cluster.bench import Bench
from roundkit.measure.cluster.replies import read_request
from roundkit.models.cluster import TreeRef, TrialNote

_bench: list[Bench] = []

DONE = b""
"""What a task without anything to say returns; anything else is what went wrong, as ``reason: detail``."""


def set_bench(bench: Bench) -> None:
    """Make this process's bench known to the tasks that Dask runs in it."""
    _bench[:] = [bench]


def notes_topic(plan_digest: str) -> str:
    """Return the topic under which workers tell of a round's trials."""
    return f"roundkit-{plan_digest}"


async def measure(request: bytes, candidate: bytes) -> bytes:
    """Run one experiment and return the reply's canonical bytes.

    Args:
        request: A :class:`RemoteRequest`.
        candidate: The bundle of the candidate's tree.

    Raises:
        MeasurementBroke: the request cannot be read.
    """
    from distributed import get_worker

    remote = read_request(request)
    worker, loop = get_worker(), asyncio.get_running_loop()
    topic = notes_topic(remote.plan_digest)

    def tell(note: TrialNote) -> None:
        loop.call_soon_threadsafe(partial(worker.log_event, topic, note.to_bytes().decode()))

    reply = await asyncio.wrap_future(_bench[0].submit(remote, candidate, tell))
    return reply.to_bytes()


async def take_piece(
    sender: str, tree: bytes, offset: int, piece: bytes, layer: bool, next_s: float
) -> bytes:
    """Take a piece of a tree's bundle; the next one comes within so many seconds, or never."""
    try:
        reference = TreeRef.from_bytes(tree, place="tree")
        await asyncio.to_thread(
            _bench[0].take_piece, sender, reference, offset, piece, layer=layer, next_s=next_s
        )
    except MeasurementBroke as error:
        return f"{error.reason}: {error.detail}".encode()
    except OSError as error:
        return f"{host_reason(error)}: {error}".encode()
    except (Refused, pydantic.ValidationError) as error:
        return f"request-malformed: {error}".encode()
    return DONE


async def clock() -> bytes:
    """Return the time on this machine, as RFC 3339."""
    return format_utc(now_utc()).encode()


async def stop(run: str) -> bytes:
    """End a run at its next trial; one that is not here yet is never begun, and told so."""
    return DONE if _bench[0].stop(run) else b"not begun"


async def wait_on(run: str, seconds: float) -> bytes:
    """Let a run wait for its devices for so many seconds from now."""
    _bench[0].wait_on(run, seconds)
    return DONE


async def collect(run: str) -> bytes:
    """Return the reply of a finished run, nothing where there is none."""
    reply = _bench[0].spool.get(run)
    return DONE if reply is None else reply.to_bytes()


async def forget(run: str) -> bytes:
    """Remove a reply that its coordinator has."""
    _bench[0].spool.forget(run)
    return DONE
