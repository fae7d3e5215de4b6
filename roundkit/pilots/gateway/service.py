"""The gateway of one trial: it takes one message after the other, archives it, acts, and answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import MS_IN_S
from roundkit.models.agent_run import AgentEnd
from roundkit.models.pilot_draft import PilotTool
from roundkit.models.pilot_trial import GatewayCall
from roundkit.pilots.gateway.drift import Drift
from roundkit.pilots.gateway.protocol import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    UNKNOWN_METHOD,
    BadMessage,
    Notification,
    Request,
    called,
    error_bytes,
    initialized,
    read_message,
    result_bytes,
    tool_list,
)
from roundkit.pilots.gateway.tools import Done, Tools, over_the_limit
from roundkit.pilots.gateway.wire import Message, Wire, WireFull
from roundkit.rules.pilot_answers import OWN_TOOLS, READ, shown_name


class GatewayService:
    """Serves one trial's agent.

    Args:
        wire: The wire.
        tools: What calls do.
        offered: The variant's programs, as agents are told of them.
        calls_file: File for the calls; it must not exist.
        most_calls: Calls that are carried out; further ones are refused.
        drift: The task's drift; null without one.
    """

    def __init__(
        self,
        wire: Wire,
        tools: Tools,
        offered: Sequence[PilotTool],
        calls_file: Path,
        *,
        most_calls: int,
        drift: Drift | None,
    ) -> None:
        self._wire = wire
        self._tools = tools
        self._offered = tool_list(offered)
        self._calls = calls_file.open("xb", buffering=0)
        self._most_calls = most_calls
        self._drift = drift
        self.calls = 0
        self.failed_calls = 0
        self.failure: str | None = None

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Serve for the duration of a block; at its end the archive is whole.

        Whatever breaks is kept in ``failure``; the block's own agent is ended over it (:meth:`halt`).
        """
        thread = threading.Thread(target=self._serve, name="pilot-gateway")
        thread.start()
        try:
            yield
        finally:
            self._wire.stop()
            thread.join()
            self._wire.close()
            self._calls.close()

    def halt(self) -> AgentEnd | None:
        """Say that the agent has to end, because nobody serves it any more."""
        return None if self.failure is None else "killed"

    def _serve(self) -> None:
        try:
            for message in self._wire.messages():
                self._take(message)
        except WireFull as full:
            self.failure = str(full)
        except Exception as error:
            self.failure = f"the gateway broke: {error}"

    def _take(self, message: Message) -> None:
        if message.is_cut:
            self._wire.send(
                error_bytes(None, INVALID_REQUEST, f"a message of {message.size} bytes is too long")
            )
            return
        match read_message(message.data):
            case BadMessage(known, code, reason):
                self._wire.send(error_bytes(known, code, reason))
            case Request(number, "tools/call", params):
                self._answer_call(message, number, params)
            case Request(number, method, params):
                self._answer(number, method, params)
            case Notification():
                pass

    def _answer(self, number: str | int, method: str, params: dict[str, Any]) -> None:
        match method:
            case "initialize":
                result = initialized(params)
            case "tools/list":
                result = self._offered
            case "ping":
                result = {}
            case _:
                self._wire.send(error_bytes(number, UNKNOWN_METHOD, "there is no such method"))
                return
        self._wire.send(result_bytes(number, result))

    def _answer_call(self, message: Message, number: str | int, params: dict[str, Any]) -> None:
        name = params.get("name")
        if not isinstance(name, str):
            self._wire.send(error_bytes(number, INVALID_PARAMS, "a call names its tool"))
            return
        began = time.monotonic()
        self.calls += 1
        sequence = self.calls
        if sequence > self._most_calls:
            done = Done(shown_name(name), over_the_limit(self._most_calls))
        else:
            done = self._tools.do(name, params.get("arguments", {}))
        self.failed_calls += done.answer.exit_code != 0
        wall_ms = round((time.monotonic() - began) * MS_IN_S)
        sent = None
        try:
            sent = self._wire.send(_answer_bytes(number, name, done))
        finally:
            # What was done is recorded, whether or not the agent came to know of it.
            self._record(sequence, message.line, sent, done, wall_ms)
        if sent is not None:
            self._drift_after(sequence, done)

    def _record(self, sequence: int, request: int, response: int | None, done: Done, wall_ms: int) -> None:
        call = GatewayCall(
            sequence=sequence,
            request_line=request,
            response_line=response,
            tool=done.tool,
            argv=done.argv,
            path=done.path,
            expected_sha256=done.expected_sha256,
            found_sha256=done.found_sha256,
            after_sha256=done.after_sha256,
            code=done.answer.code,
            exit_code=done.answer.exit_code,
            stdout_sha256=digest_bytes(done.answer.stdout.encode()),
            stderr_sha256=digest_bytes(done.answer.stderr.encode()),
            wall_ms=wall_ms,
        )
        self._calls.write(call.to_bytes() + b"\n")

    def _drift_after(self, sequence: int, done: Done) -> None:
        """Make the drift, once, after the first read that told the agent what the file holds."""
        drift = self._drift
        told = done.found_sha256 if (done.tool, done.answer.code) == (READ, "ok") else None
        if drift is None or told is None or done.path != drift.path:
            return
        self._drift = None
        drift.make(self._tools.files, told, sequence)


def _answer_bytes(number: str | int, name: str, done: Done) -> bytes:
    if name not in OWN_TOOLS:
        return error_bytes(number, INVALID_PARAMS, done.answer.stderr.strip())
    return result_bytes(number, called(done.answer))
