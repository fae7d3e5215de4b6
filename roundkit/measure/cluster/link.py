"""The connection to a Dask scheduler: made again whenever it breaks, with what the workers said last."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic

from roundkit.core.errors import Refused
from roundkit.measure.cluster.security import security_of
from roundkit.models.cluster import TrialNote, WorkerState

if TYPE_CHECKING:
    from distributed import Client

METRIC = "roundkit"
"""Under which name a worker's state travels in its heartbeat."""

_REFRESH_S = 0.3
_CONNECT_S = 3.0
_ANSWER_S = 10.0
LOOK_S = _REFRESH_S + _ANSWER_S
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
        self._security = security_of(tls)
        self._topic, self._on_note, self._on_change = topic, on_note, on_change
        self.client: Client | None = None
        self.workers: Mapping[str, WorkerState] = {}
        self.trouble: str | None = f"the scheduler at {address} was not reached yet"
        self.generation = 0
        for name in ("distributed.client", "distributed.core", "distributed.comm"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of it is said by `trouble`

    async def keep(self) -> None:
        """Look at the cluster again and again, and connect anew whenever it cannot be reached."""
        while True:
            try:
                if self.client is None:
                    await self._connect()
                await self._look()
            except (OSError, TimeoutError, RuntimeError, ValueError) as error:
                await self._lose(f"the scheduler at {self._address} does not answer: {_short(error)}")
            await asyncio.sleep(_REFRESH_S)

    async def _connect(self) -> None:
        from distributed import Client

        self.client = await Client(
            self._address,
            security=self._security,
            asynchronous=True,
            set_as_default=False,
            timeout=_CONNECT_S,
            heartbeat_interval="5s",
        )
        self.generation += 1
        self.client.subscribe_topic(self._topic, self._heard)

    def _heard(self, event: tuple[float, Any]) -> None:
        with contextlib.suppress(Refused, pydantic.ValidationError, TypeError, AttributeError):
            self._on_note(TrialNote.from_bytes(event[1].encode(), place="note"))

    async def _look(self) -> None:
        client = self.client
        if client is None or client.status != "running" or client.scheduler is None:
            raise OSError("the connection broke")
        told = await asyncio.wait_for(client.scheduler.identity(n_workers=-1), _ANSWER_S)
        states = {address: _state(worker) for address, worker in told["workers"].items()}
        self.workers = {address: state for address, state in states.items() if state is not None}
        self.trouble = None if self.workers else f"no worker is connected to the scheduler at {self._address}"
        self._on_change()

    async def _lose(self, why: str) -> None:
        client, self.client = self.client, None
        self.workers, self.trouble = {}, why
        if client is not None:
            self.generation += 1
            with contextlib.suppress(Exception):
                await asyncio.wait_for(client.close(timeout=1), _CONNECT_S)
        self._on_change()

    async def close(self) -> None:
        """End the connection."""
        if self.client is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self.client.close(timeout=1), _CONNECT_S)
            self.client = None


def _state(worker: Mapping[str, Any]) -> WorkerState | None:
    """Return what a worker says of itself; None for one that is not roundkit's, or of another version."""
    told = worker.get("metrics", {}).get(METRIC)
    if worker.get("status") != "running" or not isinstance(told, str):
        return None
    try:
        return WorkerState.from_bytes(told.encode(), place="worker")
    except (Refused, pydantic.ValidationError):
        return None


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
