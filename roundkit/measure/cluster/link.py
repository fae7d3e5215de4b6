"""The connection to a Dask scheduler: made again whenever it breaks, with what the workers said last."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic

import roundkit
from roundkit.core.errors import Refused
from roundkit.measure.cluster.reaching import silence, unreachable_because
from roundkit.measure.cluster.security import security_of
from roundkit.models.cluster import TrialNote, WorkerState

if TYPE_CHECKING:
    from distributed import Client

METRIC = "roundkit"
"""Under which name a worker's state travels in its heartbeat."""

REFRESH_S = 0.3
_CONNECT_S = 3.0
_ANSWER_S = 10.0
LOOK_S = REFRESH_S + _ANSWER_S
"""Within this many seconds a look at the cluster tells what was lost."""


class Link:
    """A client of one scheduler, kept connected; lives in an event loop.

    Args:
        address: The scheduler's.
        tls: Folder with certificates; None without TLS.
        topic: Under which workers tell of trials.
        on_note: Called in the loop with each of those.
        on_change: Called in the loop after each look at the cluster, and when the scheduler is lost.
    """

    def __init__(
        self,
        address: str,
        tls: Path | None,
        *,
        topic: str,
        on_note: Callable[[TrialNote], None],
        on_change: Callable[[], None],
    ) -> None:
        self._address = address
        self._tls = tls
        self._security = security_of(tls)
        self._topic, self._on_note, self._on_change = topic, on_note, on_change
        self.client: Client | None = None
        self.workers: Mapping[str, WorkerState] = {}
        self.strangers: Mapping[str, str] = {}
        self.trouble: str | None = f"the scheduler at {address} was not reached yet"
        self.generation = 0
        silence("distributed.client", "distributed.core", "distributed.comm", "distributed.protocol")

    async def keep(self) -> None:
        """Look at the cluster again and again, and connect anew whenever it cannot be reached."""
        while True:
            try:
                if self.client is None:
                    await self._connect()
                await self._look()
            except Exception as error:  # whatever Dask makes of what answers there: it may be no scheduler
                why = await asyncio.to_thread(unreachable_because, self._address, self._tls, error)
                await self._lose(f"the scheduler at {self._address} does not answer: {why}")
            await asyncio.sleep(REFRESH_S)

    async def _connect(self) -> None:
        from distributed import Client

        client = Client(
            self._address,
            security=self._security,
            asynchronous=True,
            set_as_default=False,
            timeout=_CONNECT_S,
            heartbeat_interval="5s",
        )
        try:
            # Dask's own limit does not count once the other side has taken the connection.
            self.client = await asyncio.wait_for(client, _ANSWER_S)
        except BaseException:  # also where the pool is closed meanwhile: Dask would end it without a loop
            await _end(client)
            raise
        self.generation += 1
        client.subscribe_topic(self._topic, self._heard)

    def _heard(self, event: tuple[float, Any]) -> None:
        with contextlib.suppress(Refused, pydantic.ValidationError, TypeError, AttributeError):
            self._on_note(TrialNote.from_bytes(event[1].encode(), place="note"))

    async def _look(self) -> None:
        client = self.client
        if client is None or client.status != "running" or client.scheduler is None:
            raise OSError("the connection broke")
        told = await asyncio.wait_for(client.scheduler.identity(n_workers=-1), _ANSWER_S)
        states = {address: _state(worker) for address, worker in told["workers"].items()}
        self.workers = {at: state for at, state in states.items() if isinstance(state, WorkerState)}
        self.strangers = {at: state for at, state in states.items() if isinstance(state, str)}
        self.trouble = None if self.workers else self._no_worker()
        self._on_change()

    def _no_worker(self) -> str:
        left_out = "".join(f"; the one at {address} {why}" for address, why in self.strangers.items())
        others = " that could measure" if left_out else ""
        return f"no worker{others} is connected to the scheduler at {self._address}{left_out}"

    async def _lose(self, why: str) -> None:
        client, self.client = self.client, None
        self.workers, self.strangers, self.trouble = {}, {}, why
        if client is not None:
            self.generation += 1
            await _end(client)
        self._on_change()

    async def close(self) -> None:
        """End the connection."""
        if self.client is not None:
            await _end(self.client)
            self.client = None


async def _end(client: Client) -> None:
    """Let go of a connection, whatever is left of it."""
    with contextlib.suppress(Exception):
        await asyncio.wait_for(client.close(timeout=1), _CONNECT_S)


def _state(worker: Mapping[str, Any]) -> WorkerState | str | None:
    """Return what a worker says of itself, or why it is not used; None for one that comes or goes."""
    told = worker.get("metrics", {}).get(METRIC)
    if worker.get("status") != "running":
        return None
    if not isinstance(told, str):
        return "was not started by `roundkit worker`"
    try:
        state = WorkerState.from_bytes(told.encode(), place="worker")
    except (Refused, pydantic.ValidationError):
        return f"is of another roundkit than {roundkit.__version__}"
    # What two versions make of one request is nothing to be mixed in one round.
    if state.version != roundkit.__version__:
        return f"is of roundkit {state.version}, and this is {roundkit.__version__}"
    return state
