"""One connection to the proxy: its request is read and judged, then bytes are passed both ways."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from roundkit.host.confine.proxy.book import DestinationBook, Row
from roundkit.host.confine.proxy.destinations import AllowList, HostPort
from roundkit.host.confine.proxy.head import MalformedHead, RequestHead, parse_head
from roundkit.host.confine.types import DestinationOutcome

_CHUNK_BYTES = 1 << 16
_FLUSH_S = 30.0
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_STATUS: dict[DestinationOutcome, str] = {
    "not-listed": "403 Forbidden",
    "private-address": "403 Forbidden",
    "malformed": "400 Bad Request",
    "head-too-large": "431 Request Header Fields Too Large",
    "head-too-slow": "408 Request Timeout",
    "unreachable": "502 Bad Gateway",
}


@dataclass(frozen=True)
class ProxyBounds:
    """What one command's proxy holds at most.

    Attributes:
        connections: Connections at once; further ones wait in the kernel's queue of 128.
        head_bytes: Bytes of a request's head.
        head_s: Seconds within which a head has to be complete.
        connect_s: Seconds for looking a name up, and again for each address that is tried.
        idle_s: Seconds without a byte in either direction that end a connection; a provider's stream can
            be quiet for minutes.
    """

    connections: int = 64
    head_bytes: int = 16 << 10
    head_s: float = 60.0
    connect_s: float = 30.0
    idle_s: float = 900.0


@dataclass(frozen=True)
class _Way:
    """One direction of a connection."""

    source: asyncio.StreamReader
    target: asyncio.StreamWriter

    async def pass_on(self, count: Callable[[int], None]) -> bool:
        """Pass bytes on to the end of the source; False if the connection broke."""
        try:
            while chunk := await self.source.read(_CHUNK_BYTES):
                count(len(chunk))
                self.target.write(chunk)
                await self.target.drain()
            if self.target.can_write_eof():
                self.target.write_eof()
        except OSError:
            return False
        return True


class _Denied(Exception):
    def __init__(self, outcome: DestinationOutcome, destination: HostPort | None, why: str) -> None:
        super().__init__(why)
        self.outcome: DestinationOutcome = outcome
        self.destination = destination


@dataclass(frozen=True)
class Exchange:
    """Serves connections by one list and one set of bounds, and enters them in one book."""

    allowed: AllowList
    bounds: ProxyBounds
    book: DestinationBook

    async def serve(self, connection: socket.socket) -> None:
        """Serve one accepted connection to its end, whatever comes over it."""
        reader, writer = await asyncio.open_connection(sock=connection, limit=self.bounds.head_bytes)
        try:
            await self._serve(reader, writer)
        except _Denied as denied:
            self.book.enter(denied.destination, denied.outcome)
            await _answer(writer, _STATUS[denied.outcome], str(denied))
        finally:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await self._head(reader)
        if head is None:
            return
        away_reader, away_writer = await self._connect(head.destination)
        try:
            row = self.book.enter(head.destination, "allowed")
            if head.tunnel:
                writer.write(_ESTABLISHED)
            away_writer.write(head.forwarded)
            row.sent_bytes += len(head.forwarded)
            await self._pass_on(_Way(reader, away_writer), _Way(away_reader, writer), row)
            await _flush(writer)
            await _flush(away_writer)
        finally:
            away_writer.transport.abort()

    async def _head(self, reader: asyncio.StreamReader) -> RequestHead | None:
        """Read a request; None if the connection ended without one."""
        try:
            async with asyncio.timeout(self.bounds.head_s):
                head = parse_head(await reader.readuntil(b"\r\n\r\n"))
        except asyncio.LimitOverrunError:
            raise _Denied("head-too-large", None, f"a head of over {self.bounds.head_bytes} bytes") from None
        except TimeoutError:
            raise _Denied("head-too-slow", None, "the head was not complete in time") from None
        except MalformedHead as error:
            raise _Denied("malformed", None, str(error)) from None
        except (asyncio.IncompleteReadError, OSError):
            return None
        if not self.allowed.names(head.destination):
            raise _Denied("not-listed", head.destination, f"{head.destination} is not among the plan's hosts")
        return head

    async def _connect(self, wanted: HostPort) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to an admitted address; the name is looked up once, here."""
        try:
            async with asyncio.timeout(self.bounds.connect_s):
                addresses = await _look_up(wanted)
        except (OSError, UnicodeError) as error:
            raise _Denied("unreachable", wanted, f"{wanted} cannot be looked up: {error}") from None
        admitted = [address for address in addresses if self.allowed.admits(address, wanted.port)]
        if not admitted:
            why = f"{wanted} has no public address, and the plan's list names no other"
            raise _Denied("private-address", wanted, why)
        for address in admitted:
            with suppress(OSError):
                async with asyncio.timeout(self.bounds.connect_s):
                    return await asyncio.open_connection(address, wanted.port, limit=_CHUNK_BYTES)
        raise _Denied("unreachable", wanted, f"{wanted} does not answer")

    async def _pass_on(self, up: _Way, down: _Way, row: Row) -> None:
        def sent(count: int) -> None:
            row.sent_bytes += count

        def received(count: int) -> None:
            row.received_bytes += count

        ways = {asyncio.ensure_future(up.pass_on(sent)), asyncio.ensure_future(down.pass_on(received))}
        try:
            while ways:
                before = row.sent_bytes + row.received_bytes
                ended, ways = await asyncio.wait(
                    ways, timeout=self.bounds.idle_s, return_when=asyncio.FIRST_COMPLETED
                )
                idle = not ended and row.sent_bytes + row.received_bytes == before
                if idle or not all(way.result() for way in ended):
                    return
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)


async def _answer(writer: asyncio.StreamWriter, status: str, why: str) -> None:
    body = f"roundkit: {why}\n".encode("latin-1", "replace")
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
    await _flush(writer)


async def _flush(writer: asyncio.StreamWriter) -> None:
    """Close a connection once what was written to it has gone out, or does not within a while."""
    with suppress(OSError):
        async with asyncio.timeout(_FLUSH_S):
            writer.close()
            await writer.wait_closed()


async def _look_up(wanted: HostPort) -> list[str]:
    """Return the addresses of a host, in the resolver's order, each once.

    In a thread of its own, which nothing waits for: a resolver that hangs must not hold up the end.

    Raises:
        OSError: It has none.
        UnicodeError: It is no name that a resolver takes.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[str]] = loop.create_future()

    def settle(addresses: list[str], error: Exception | None) -> None:
        if found.done():
            return
        if error is None:
            found.set_result(addresses)
        else:
            found.set_exception(error)

    def ask() -> None:
        addresses: list[str] = []
        failed: Exception | None = None
        try:
            rows = socket.getaddrinfo(wanted.host, wanted.port, type=socket.SOCK_STREAM)
            addresses = list(dict.fromkeys(str(row[4][0]) for row in rows))
        except (OSError, UnicodeError) as error:
            failed = error
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(settle, addresses, failed)

    threading.Thread(target=ask, name="look-up", daemon=True).start()
    return await found
