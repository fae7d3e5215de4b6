"""A model provider on the loopback for draft agents that are scripts: it holds requests, and refuses some."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal

from support.loopback import OnLoopback, Quiet, served

Refuser = Literal["platform", "provider"]


@dataclass
class WaveProvider(OnLoopback):
    """A running provider.

    Attributes:
        refuse: Says of each request, by its number from 1, who refuses it, or None.
        credit_usd: What it says when it is asked for the credit; null answers with an error.
        asked: The requests, as they came in.
        answered: Names of the targets that were answered.
    """

    refuse: Callable[[int, dict[str, Any]], Refuser | None] = lambda _number, _request: None
    credit_usd: float | None = 100.0
    asked: list[dict[str, Any]] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    _held: set[str] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _over: bool = False

    def hold(self, *names: str) -> None:
        """Answer nobody who asks for one of these targets, until they are released."""
        with self._changed:
            self._held.update(names)

    def release(self, *names: str) -> None:
        """Answer those who wait for one of these targets; all of them where none is named."""
        with self._changed:
            self._held -= set(names or self._held)
            self._changed.notify_all()

    def wait_for_request(self, name: str) -> None:
        """Wait until somebody has asked for a target."""
        with self._changed:
            assert self._changed.wait_for(lambda: any(one["name"] == name for one in self.asked), 60), name

    def _take(self, request: dict[str, Any]) -> Refuser | None:
        with self._changed:
            self.asked.append(request)
            number = len(self.asked)
            self._changed.notify_all()
            self._changed.wait_for(lambda: request["name"] not in self._held or self._over)
            refused = self.refuse(number, request)
            if refused is None:
                self.answered.append(request["name"])
            return refused


@contextmanager
def wave_provider(kind: type[WaveProvider] = WaveProvider, **settings: Any) -> Iterator[WaveProvider]:
    """Serve until the block ends; whatever is held then is answered."""
    provider = kind(**settings)
    with served(_Handler, provider) as provider.port:
        try:
            yield provider
        finally:
            with provider._changed:
                provider._over = True
                provider._changed.notify_all()


class _Handler(Quiet, BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        refused = self.server.stub._take(json.loads(self.rfile.read(length)))
        self._reply(200 if refused is None else 429, {}, {"x-refused-by": refused} if refused else {})

    def do_GET(self) -> None:
        left = self.server.stub.credit_usd
        self._reply(200 if left is not None else 503, {"usd": left}, {})

    def _reply(self, status: int, body: dict[str, Any], headers: dict[str, str]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
