"""A small client of the Model Context Protocol, as an agent's harness has one: standard library only."""

from __future__ import annotations

import json
import subprocess
from typing import Any


class Server:
    """The server that a configuration file names, started and greeted.

    Args:
        configuration: Path of the file.
    """

    def __init__(self, configuration: str) -> None:
        with open(configuration, encoding="utf-8") as stream:  # noqa: PTH123 - standard library only, and short
            (named,) = json.load(stream)["mcpServers"].values()
        self._process = subprocess.Popen(
            [named["command"], *named["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._last = 0
        told = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "script", "version": "1"},
        }
        self.about = self.ask("initialize", told)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.tools = [tool["name"] for tool in self.ask("tools/list", {})["tools"]]

    def send(self, message: object) -> None:
        """Send one message."""
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, content: bytes) -> None:
        """Send bytes as they are."""
        assert self._process.stdin is not None
        self._process.stdin.write(content)
        self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Return the next message."""
        assert self._process.stdout is not None
        message: dict[str, Any] = json.loads(self._process.stdout.readline())
        return message

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its result."""
        self._last += 1
        self.send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        while (message := self.receive()).get("id") != self._last:
            pass
        result: dict[str, Any] = message["result"]
        return result

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; return its head, with what it printed as ``stdout`` and ``stderr``."""
        head, *texts = [
            part["text"] for part in self.ask("tools/call", {"name": name, "arguments": arguments})["content"]
        ]
        told: dict[str, Any] = {"stdout": "", "stderr": "", **json.loads(head)}
        return {**told, **dict(zip(told["parts"], texts, strict=True))}
