"""A stub of two provider APIs on the loopback: it plays scripts, so that real agents can be run.

It speaks the Anthropic Messages API and the OpenAI Responses API, both streaming. What it answers follows
from the request alone: the lane that the prompt names, and the number of tool results in the conversation.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from support.loopback import OnLoopback, Quiet, served

LANE = re.compile(r"# Lane ([A-Za-z0-9_-]+)")
INPUT_TOKENS = 1000
CACHED_TOKENS = 200
OUTPUT_TOKENS = 100
"""What every call is said to have used; of the input, this much came from the provider's cache."""


@dataclass(frozen=True)
class Shell:
    """The agent is told to run a command in its shell."""

    command: str


@dataclass(frozen=True)
class Tool:
    """The agent is told to use one of its tools."""

    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True)
class Say:
    """The model's last words."""

    text: str


@dataclass(frozen=True)
class Fail:
    """The provider answers with an error, for so many requests of the lane or for good."""

    status: int
    times: int | None = None


@dataclass(frozen=True)
class Hang:
    """The provider starts its answer and never ends it."""


Step = Shell | Tool | Say | Fail | Hang


@dataclass(frozen=True)
class Request:
    """One call of the model, as it came in."""

    lane: str
    path: str
    model: str
    key: str
    tools: tuple[str, ...]
    step: Step


@dataclass
class ProviderStub(OnLoopback):
    """A running stub: its scripts, and what it was asked."""

    scripts: dict[str, Sequence[Step]]
    requests: list[Request] = field(default_factory=list)
    _failed: dict[tuple[str, int], int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)

    def calls(self, lane: str) -> list[Request]:
        """Return what one lane asked for, in order."""
        return [request for request in self.requests if request.lane == lane]

    def step(self, lane: str, results: int) -> Step:
        """Return what is next for a lane that has seen so many tool results."""
        script = self.scripts.get(lane, (Say("nothing to do"),))
        number = min(results, len(script) - 1)
        step = script[number]
        if isinstance(step, Fail) and step.times is not None:
            with self._lock:
                done = self._failed.get((lane, number), 0)
                self._failed[lane, number] = done + 1
            if done >= step.times:
                return script[number + 1]
        return step


@contextmanager
def provider_stub(scripts: Mapping[str, Sequence[Step]]) -> Iterator[ProviderStub]:
    """Serve scripts, one a lane, until the block ends."""
    stub = ProviderStub(dict(scripts))
    with served(_Handler, stub) as stub.port:
        try:
            yield stub
        finally:
            stub._over.set()


class _Handler(Quiet, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._json(200, {})

    def do_GET(self) -> None:
        self._json(404, {"error": {"type": "not_found_error", "message": "stub"}})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.split("?")[0]
        body = json.loads(raw or b"{}")
        if path.endswith("/v1/messages"):
            self._messages(body)
        elif path.endswith("/responses"):
            self._responses(body)
        else:
            self._json(404, {"error": {"type": "not_found_error", "message": "stub"}})

    def _next(self, body: Mapping[str, Any], conversation: Any, results: int) -> Step | None:
        """Record the call and return its step; None when it failed or hung already."""
        found = LANE.search(json.dumps(conversation))
        lane = found[1] if found else ""
        tools = tuple(tool.get("name") or tool.get("type", "") for tool in body.get("tools", ()))
        said = sum(item.get("role") == "assistant" for item in conversation if isinstance(item, dict))
        step = self.server.stub.step(lane, results if tools else said)
        if not tools and not isinstance(step, Say | Fail | Hang):
            step = Say("stub")
        key = self.headers.get("x-api-key") or self.headers.get("authorization") or ""
        self.server.stub.requests.append(Request(lane, self.path, body.get("model", ""), key, tools, step))
        if isinstance(step, Fail):
            self._json(
                step.status, {"type": "error", "error": {"type": "api_error", "message": "stub fault"}}
            )
            return None
        if isinstance(step, Hang):
            self._start()
            self._event("ping", {"type": "ping"})
            self.server.stub._over.wait()
            return None
        return step

    def _messages(self, body: Mapping[str, Any]) -> None:
        messages = body.get("messages", [])
        blocks = [
            block
            for message in messages
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        step = self._next(body, messages, sum(block.get("type") == "tool_result" for block in blocks))
        if step is None:
            return
        block = _anthropic_block(step, number=len(messages))
        stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
        usage = {
            "input_tokens": INPUT_TOKENS - CACHED_TOKENS,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": CACHED_TOKENS,
            "output_tokens": OUTPUT_TOKENS,
        }
        message = {
            "id": f"msg_stub{len(messages)}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**usage, "output_tokens": 1},
        }
        if not body.get("stream"):
            self._json(200, {**message, "content": [block], "stop_reason": stop, "usage": usage})
            return
        self._start()
        self._event("message_start", {"message": message})
        for name, data in _block_events(block):
            self._event(name, {"index": 0, **data})
        self._event("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage})
        self._event("message_stop", {})

    def _responses(self, body: Mapping[str, Any]) -> None:
        items = body.get("input", [])
        step = self._next(body, items, sum(str(item.get("type", "")).endswith("_output") for item in items))
        if step is None:
            return
        names = {tool.get("name") or tool.get("type") for tool in body.get("tools", ())}
        item = {**_openai_item(step, names), "id": f"item_stub{len(items)}"}
        usage = {
            "input_tokens": INPUT_TOKENS,
            "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
            "output_tokens": OUTPUT_TOKENS,
            "output_tokens_details": {"reasoning_tokens": 10},
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        }
        response = {"id": f"resp_stub{len(items)}", "object": "response"}
        self._start()
        self._event("response.created", {"response": {**response, "status": "in_progress"}})
        self._event("response.output_item.added", {"output_index": 0, "item": item})
        self._event("response.output_item.done", {"output_index": 0, "item": item})
        done = {**response, "status": "completed", "output": [item], "usage": usage}
        self._event("response.completed", {"response": done})

    def _start(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def _event(self, name: str, data: Mapping[str, Any]) -> None:
        self.wfile.write(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode())
        self.wfile.flush()

    def _json(self, status: int, answer: Mapping[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _anthropic_block(step: Step, *, number: int) -> dict[str, Any]:
    if isinstance(step, Shell):
        step = Tool("Bash", {"command": step.command, "description": "stub"})
    if isinstance(step, Tool):
        return {"type": "tool_use", "id": f"toolu_stub{number}", "name": step.name, "input": dict(step.input)}
    assert isinstance(step, Say)
    return {"type": "text", "text": step.text}


def _block_events(block: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return one content block as the stream brings it: empty, then what fills it, then its end."""
    if block["type"] == "text":
        yield "content_block_start", {"content_block": {"type": "text", "text": ""}}
        yield "content_block_delta", {"delta": {"type": "text_delta", "text": block["text"]}}
    else:
        yield "content_block_start", {"content_block": {**block, "input": {}}}
        partial = json.dumps(block["input"])
        yield "content_block_delta", {"delta": {"type": "input_json_delta", "partial_json": partial}}
    yield "content_block_stop", {}


def _openai_item(step: Step, tools: set[str]) -> dict[str, Any]:
    if isinstance(step, Say):
        content = [{"type": "output_text", "text": step.text, "annotations": []}]
        return {"type": "message", "role": "assistant", "status": "completed", "content": content}
    if isinstance(step, Shell) and "exec" in tools:
        # Codex's one tool takes a program in JavaScript that calls the others.
        program = (
            f"const r = await tools.exec_command({{cmd: {json.dumps(step.command)}}});\ntext(r.output ?? '');"
        )
        return {"type": "custom_tool_call", "name": "exec", "call_id": "call_stub", "input": program}
    if isinstance(step, Shell):
        name = "exec_command" if "exec_command" in tools else "shell_command"
        step = Tool(name, {"cmd" if name == "exec_command" else "command": step.command})
    assert isinstance(step, Tool)
    arguments = json.dumps(dict(step.input))
    return {"type": "function_call", "name": step.name, "arguments": arguments, "call_id": "call_stub"}
