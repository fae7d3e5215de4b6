"""An HTTP server on the loopback, for tests that stand in for a service."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LoopbackServer(ThreadingHTTPServer):
    """A server that says nothing of clients that went away.

    Attributes:
        stub: What its handlers answer from, as whoever starts it has set it.
    """

    daemon_threads = True
    stub: Any = None

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


class OnLoopback:
    """What a stub is that a server here answers from: it knows where it is found.

    Attributes:
        port: The server's; set once it runs.
    """

    port: int = 0

    @property
    def host(self) -> str:
        """Return what a plan's list of hosts names."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Return the address of everything that it answers."""
        return f"http://{self.host}"


class Quiet:
    """What a handler is, beside a request handler: it logs nothing, and knows what it answers from."""

    server: LoopbackServer

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(handler: type[BaseHTTPRequestHandler], stub: Any = None) -> Iterator[int]:
    """Serve on a free port, which is given, until the block ends."""
    with LoopbackServer(("127.0.0.1", 0), handler) as server:
        server.stub = stub
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
