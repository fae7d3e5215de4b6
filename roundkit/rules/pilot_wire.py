"""A pilot's archived wire read back: which messages crossed, and which of them answer an agent's calls."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import Refused
from roundkit.models.base import Record
from roundkit.models.pilot_trial import Presentation, WireLine

CALL = "tools/call"

Line = TypeVar("Line", bound=Record)


class WireProblem(ValueError):
    """The archived bytes are not a wire: the message says which line and why."""


@dataclass(frozen=True)
class Message:
    """One message of the wire.

    Attributes:
        line: Number of its line, from 1.
        way: ``in`` from the agent, ``out`` to it.
        data: Its bytes.
        value: What they say as JSON; null where they are none.
    """

    line: int
    way: str
    data: bytes
    value: Any


def read_lines(data: bytes, kind: type[Line], *, name: str) -> tuple[Line, ...]:
    """Read a file of canonical JSON lines; what is cut off or written another way is none.

    Raises:
        WireProblem: a line has no end, is not canonical, or does not fit the model.
    """
    if data and not data.endswith(b"\n"):
        raise WireProblem(f"{name} ends within a line")
    found = []
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        try:
            record = kind.from_bytes(line, place=name)
        except (Refused, ValidationError) as error:
            raise WireProblem(f"{name} line {number} is no {kind.__name__}") from error
        if record.to_bytes() != line:
            raise WireProblem(f"{name} line {number} is not canonical")
        found.append(record)
    return tuple(found)


def read_wire(data: bytes) -> tuple[Message, ...]:
    """Return the messages of ``wire.jsonl``.

    Raises:
        WireProblem: it is not a wire.
    """
    return tuple(_messages(read_lines(data, WireLine, name="wire.jsonl")))


def _messages(lines: tuple[WireLine, ...]) -> Iterator[Message]:
    for number, line in enumerate(lines, start=1):
        try:
            data = base64.b64decode(line.base64, validate=True)
        except (binascii.Error, ValueError) as error:
            raise WireProblem(f"wire.jsonl line {number} holds no base64") from error
        if len(data) != line.bytes:
            raise WireProblem(f"wire.jsonl line {number} has {len(data)} bytes and says {line.bytes}")
        yield Message(number, line.way, data, _value(data))


def answers(messages: tuple[Message, ...]) -> dict[int, tuple[Message, Message]]:
    """Return each answered call as request and answer, by the number of the request's line.

    An answer belongs to the earliest unanswered call of its id.
    """
    waiting: dict[str, list[Message]] = {}
    found: dict[int, tuple[Message, Message]] = {}
    for message in messages:
        if not isinstance(message.value, dict) or "id" not in message.value:
            continue
        key = json.dumps(message.value["id"], sort_keys=True)
        if message.way == "in" and message.value.get("method") == CALL:
            waiting.setdefault(key, []).append(message)
        elif message.way == "out" and "method" not in message.value and waiting.get(key):
            request = waiting[key].pop(0)
            found[request.line] = (request, message)
    return found


def presentation_of(tuple_id: str, prompt: bytes, wire: bytes) -> Presentation:
    """Count what an agent was shown: its prompt, and every answer to a call as often as it was sent.

    Args:
        tuple_id: The tuple.
        prompt: The prompt's bytes as they went to the agent.
        wire: The bytes of ``wire.jsonl``.

    Raises:
        WireProblem: the wire is none.
    """
    shown = [answer.data for _, answer in answers(read_wire(wire)).values()]
    response_bytes = sum(map(len, shown))
    return Presentation(
        format="roundkit-pilot-presentation/1",
        tuple_id=tuple_id,
        prompt_sha256=digest_bytes(prompt),
        prompt_bytes=len(prompt),
        wire_sha256=digest_bytes(wire),
        responses=len(shown),
        response_bytes=response_bytes,
        total_bytes=len(prompt) + response_bytes,
    )


def _value(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
