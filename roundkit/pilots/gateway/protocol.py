"""The gateway's side of the Model Context Protocol, over lines of JSON-RPC 2.0."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import roundkit
from roundkit.core.canonical import parse_json
from roundkit.core.errors import Refused
from roundkit.models.pilot_draft import PilotTool
from roundkit.rules.pilot_answers import CALL, DELETE, LIST, READ, WRITE, AnswerCode

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
VERSIONS = ("2024-11-05", "2025-06-18", "2025-11-25")
"""Versions that are spoken, oldest first. 2025-03-26 is left out: it alone asks for batches."""

MessageId = str | int


@dataclass(frozen=True)
class Request:
    """A message that wants an answer."""

    id: MessageId
    method: str
    params: dict[str, Any]


@dataclass(frozen=True)
class Notification:
    """A message that wants none."""

    method: str


@dataclass(frozen=True)
class BadMessage:
    """A message that is none; it is answered with an error, as far as it can be told to whom."""

    id: MessageId | None
    code: int
    reason: str


@dataclass(frozen=True)
class Answer:
    """What came of one call, as the agent is told.

    Attributes:
        code: The gateway's own code.
        exit_code: Exit code; null where a program was ended.
        stdout: Standard output.
        stderr: Standard error.
        sha256: Digest of the file as it is now; null where there is none, and for programs.
        ended: Why a program was ended; null where it ended by itself.
    """

    code: AnswerCode
    exit_code: int | None
    stdout: str = ""
    stderr: str = ""
    sha256: str | None = None
    ended: str | None = None


def read_message(data: bytes) -> Request | Notification | BadMessage:
    """Understand one line."""
    try:
        message = parse_json(data, place="a message")
    except Refused as refused:
        return BadMessage(None, PARSE_ERROR, refused.refusals[0].message)
    if not isinstance(message, dict):
        return BadMessage(None, INVALID_REQUEST, "a message is one JSON object")
    named = message.get("id")
    known = named if _is_id(named) else None
    if message.get("jsonrpc") != "2.0":
        return BadMessage(known, INVALID_REQUEST, "it is no JSON-RPC 2.0")
    method = message.get("method")
    if not isinstance(method, str):
        if "method" not in message and ("result" in message or "error" in message):
            return Notification("")  # an answer, though nothing was asked
        return BadMessage(known, INVALID_REQUEST, "it has no method")
    if "id" not in message:
        return Notification(method)
    if known is None:
        return BadMessage(None, INVALID_REQUEST, "an id is a text or a whole number")
    params = message.get("params", {})
    if not isinstance(params, dict):
        return BadMessage(known, INVALID_PARAMS, "params is an object")
    return Request(known, method, params)


def result_bytes(request: MessageId, result: dict[str, Any]) -> bytes:
    """Return an answer's line, without its end."""
    return _line({"jsonrpc": "2.0", "id": request, "result": result})


def error_bytes(request: MessageId | None, code: int, reason: str) -> bytes:
    """Return an error's line, without its end."""
    return _line({"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": reason}})


def initialized(params: dict[str, Any]) -> dict[str, Any]:
    """Answer ``initialize``: the version asked for, or else the nearest before it that is spoken."""
    wanted = params.get("protocolVersion")
    earlier = [version for version in VERSIONS if isinstance(wanted, str) and version <= wanted]
    return {
        "protocolVersion": earlier[-1] if earlier else VERSIONS[-1],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "roundkit-pilot", "version": roundkit.__version__},
        "instructions": "The task's files are reached through these tools alone. Paths are relative to the"
        " task's folder. Each answer begins with a line of JSON: its code, exit code, and the file's sha256.",
    }


def called(answer: Answer) -> dict[str, Any]:
    """Return what a call is answered with: a line of JSON, and what it printed."""
    parts = {"stdout": answer.stdout, "stderr": answer.stderr}
    head: dict[str, Any] = {
        "code": answer.code,
        "exit_code": answer.exit_code,
        "sha256": answer.sha256,
        "ended": answer.ended,
        "parts": [name for name, text in parts.items() if text],
    }
    shown = {name: value for name, value in head.items() if value is not None or name == "exit_code"}
    texts = [json.dumps(shown, separators=(",", ":")), *(text for text in parts.values() if text)]
    return {"content": [{"type": "text", "text": text} for text in texts], "isError": answer.exit_code != 0}


def tool_list(programs: Sequence[PilotTool]) -> dict[str, Any]:
    """Return the tools that an agent is offered: files by their names, and the variant's programs."""
    path = {"type": "string", "description": "Relative to the task's folder, with / between its parts."}
    digest = "The sha256 that your last read of the file gave"
    tools = [
        _tool(
            READ,
            "Read a text file; the answer names its sha256, which a change of it has to state.",
            path=path,
        ),
        _tool(LIST, "List the paths of all files."),
        _tool(
            WRITE,
            "Write a whole text file. It is refused as stale when the file is not the one that you name.",
            path=path,
            content={"type": "string"},
            expected_sha256={"type": ["string", "null"], "description": f"{digest}; null to create it."},
        ),
        _tool(
            DELETE,
            "Delete a file. It is refused as stale when the file is not the one that you name.",
            path=path,
            expected_sha256={"type": "string", "description": f"{digest}."},
        ),
    ]
    if programs:
        about = "\n".join(f"- {tool.name}: {tool.about}" for tool in programs)
        tools.append(
            _tool(
                CALL,
                f"Start a program in the task's folder, without a shell. Programs:\n{about}",
                program={"type": "string", "enum": [tool.name for tool in programs]},
                argv={"type": "array", "items": {"type": "string"}},
            )
        )
    return {"tools": tools}


def _tool(name: str, description: str, **properties: dict[str, Any]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"name": name, "description": description, "inputSchema": schema}


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
