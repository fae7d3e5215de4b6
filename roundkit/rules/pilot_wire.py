"""A trial's archived wire: which of its messages answer calls, and how many bytes an agent was shown."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import Refused, refuse
from roundkit.models.pilot_trial import Presentation, WireLine


def read_wire(data: bytes) -> tuple[WireLine, ...]:
    """Read the lines of ``wire.jsonl``.

    Raises:
        Refused: ``malformed-wire``: one of them is no line of a wire, or the last one has no end.
    """
    lines = []
    if data and not data.endswith(b"\n"):
        raise refuse("malformed-wire", "its last line has no end", place="wire.jsonl")
    for number, row in enumerate(data.splitlines(), start=1):
        place = f"wire.jsonl, line {number}"
        try:
            line = WireLine.from_bytes(row, place=place)
            length = len(base64.b64decode(line.base64, validate=True))
        except (ValidationError, Refused, binascii.Error, ValueError) as error:
            raise refuse("malformed-wire", f"it is none: {error}", place=place) from None
        if length > line.bytes:
            raise refuse("malformed-wire", f"it holds {length} bytes and says {line.bytes}", place=place)
        lines.append(line)
    return tuple(lines)


def message_of(line: WireLine) -> bytes:
    """Return the bytes of a message, as far as they are kept."""
    return base64.b64decode(line.base64)


def tool_answers(lines: Sequence[WireLine]) -> Iterator[WireLine]:
    """Yield the messages that answer a ``tools/call``.

    The gateway takes one message after the other, so that an answer follows what it answers at once.
    """
    before: WireLine | None = None
    for line in lines:
        if line.way == "out" and before is not None and before.way == "in" and _is_call(before):
            yield line
        before = line


def presentation_of(tuple_id: str, prompt: bytes, wire: bytes) -> Presentation:
    """Count what an agent was shown: its prompt once, and each answer to a call as often as it was sent.

    Args:
        tuple_id: The tuple, or a setup attempt's name.
        prompt: The prompt, as it went to the agent.
        wire: The bytes of ``wire.jsonl``.

    Raises:
        Refused: ``malformed-wire``.
    """
    answers = [line.bytes for line in tool_answers(read_wire(wire))]
    return Presentation(
        format="roundkit-pilot-presentation/1",
        tuple_id=tuple_id,
        prompt_sha256=digest_bytes(prompt),
        prompt_bytes=len(prompt),
        wire_sha256=digest_bytes(wire),
        responses=len(answers),
        response_bytes=sum(answers),
        total_bytes=len(prompt) + sum(answers),
    )


def _is_call(line: WireLine) -> bool:
    try:
        message = json.loads(message_of(line))
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and message.get("method") == "tools/call"
