"""The proxy of one confined command: a thread of the coordinator with a socket on the command's loopback."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterable
from contextlib import suppress

from roundkit.host.confine.proxy.book import DestinationBook
from roundkit.host.confine.proxy.destinations import AllowList
from roundkit.host.confine.proxy.exchange import Exchange, ProxyBounds
from roundkit.host.confine.proxy.listening import PORT, listen_inside
from roundkit.host.confine.types import Destination
from roundkit.host.confine.unavailable import ConfinementUnavailable

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_OUT_OF_DESCRIPTORS_S = 0.1


class Proxy:
    """Serves one command from its start gate to its end.

    Args:
        hosts: The plan's list.
        bounds: What it holds at most.

    Raises:
        Refused: One of the hosts is none (``network-host``).
    """

    def __init__(self, hosts: Iterable[str], bounds: ProxyBounds = ProxyBounds()) -> None:  # noqa: B008
        self._allowed = AllowList.parse(hosts)
        self._book = DestinationBook()
        self._exchange = Exchange(self._allowed, bounds, self._book)
        self._bounds = bounds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None
        self._failed: OSError | None = None

    def variables(self) -> dict[str, str]:
        """Return the variables by which programs find the proxy, in both spellings.

        What a command serves on its own loopback is reached directly, unless the list names that host.
        """
        listed = {host.host for host in self._allowed.hosts}
        place = f"http://127.0.0.1:{PORT}"
        direct = ",".join(name for name in _LOOPBACK if name not in listed)
        values = {"HTTP_PROXY": place, "HTTPS_PROXY": place, "NO_PROXY": direct}
        return {**values, **{name.lower(): value for name, value in values.items()}}

    def start(self, pid: int, uid: int) -> None:
        """Listen in the network namespace of a command that waits at its gate, and serve.

        Args:
            pid: Process of the command.
            uid: Its user.

        Raises:
            ConfinementUnavailable: The namespace cannot be entered (``proxy-namespace``), or as for
                :meth:`serve`.
        """
        self.serve(listen_inside(pid, uid))

    def serve(self, listener: socket.socket) -> None:
        """Serve whoever connects to a socket, which is closed at the end.

        Raises:
            ConfinementUnavailable: This process is out of descriptors (``proxy-start``).
        """
        listener.setblocking(False)
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(listener, ready), name="proxy", daemon=True)
        self._thread.start()
        ready.wait()
        if self._failed is not None:
            raise ConfinementUnavailable("proxy-start", f"the proxy cannot be started: {self._failed}")

    def close(self) -> tuple[Destination, ...]:
        """End every connection and return what was asked for; a second call returns the same."""
        if self._thread is not None:
            if self._loop is not None:
                with suppress(RuntimeError):  # ended already
                    self._loop.call_soon_threadsafe(self._stop)
            self._thread.join()
            self._thread = None
        return self._book.records()

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _run(self, listener: socket.socket, ready: threading.Event) -> None:
        async def accept() -> None:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            ready.set()
            await self._accept(listener)

        with listener, suppress(asyncio.CancelledError):
            try:
                asyncio.run(accept())
            except OSError as error:
                self._failed = error
            finally:
                ready.set()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        free = asyncio.Semaphore(self._bounds.connections)
        async with asyncio.TaskGroup() as group:
            while True:
                await free.acquire()
                try:
                    connection, _ = await loop.sock_accept(listener)
                except OSError:
                    # Gone before it was accepted, or this process is out of descriptors for now.
                    free.release()
                    await asyncio.sleep(_OUT_OF_DESCRIPTORS_S)
                    continue
                task = group.create_task(self._serve(connection))
                task.add_done_callback(lambda _: free.release())

    async def _serve(self, connection: socket.socket) -> None:
        # One broken connection must not end the others: a task group would.
        with connection, suppress(Exception):
            await self._exchange.serve(connection)
