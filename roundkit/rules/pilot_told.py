"""A gateway's calls against the archived wire: what was asked and told, in the bytes that crossed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import Refused
from roundkit.models.pilot_trial import GatewayCall, WireLine
from roundkit.rules.pilot_answers import OWN_TOOLS, READ, WRITE
from roundkit.rules.pilot_lines import LinesProblem, read_lines
from roundkit.rules.pilot_reading import Bound, Ineligible
from roundkit.rules.pilot_wire import message_of, read_wire, tool_answers

CALLS, WIRE = "calls.jsonl", "wire.jsonl"


@dataclass(frozen=True)
class Told:
    """What an agent was told of one call."""

    code: str
    exit_code: int | None
    stdout: str
    stderr: str


def checked_calls(trial: Bound) -> tuple[GatewayCall, ...]:
    """Return the gateway's calls, each as the wire shows it.

    Raises:
        Ineligible: the calls are not whole, or the wire shows others.
    """
    try:
        calls = read_lines(trial.data(CALLS), GatewayCall, name=CALLS)
        wire = read_wire(trial.data(WIRE))
    except LinesProblem as problem:
        raise Ineligible("malformed", str(problem)) from problem
    except Refused as refused:
        place, message = refused.refusals[0].place, refused.refusals[0].message
        raise Ineligible("malformed", f"{place}: {message}") from refused
    if [call.sequence for call in calls] != list(range(1, len(calls) + 1)):
        raise Ineligible("out-of-order", f"{CALLS} is not numbered from 1 without a gap")
    for problem_ in _problems(calls, wire):
        raise Ineligible("disagrees", problem_)
    return calls


def _problems(calls: Sequence[GatewayCall], wire: Sequence[WireLine]) -> Iterator[str]:
    shown = {id(line) for line in tool_answers(wire)}
    answers = {number for number, line in enumerate(wire, start=1) if id(line) in shown}
    before = 0
    for call in calls:
        if call.request_line <= before or call.request_line > len(wire):
            yield f"call {call.sequence} asks in line {call.request_line} of {WIRE}, which is not its place"
            return
        before = call.request_line
        if not _asks(call, wire[call.request_line - 1]):
            yield f"call {call.sequence} is not what {WIRE} shows in line {call.request_line}"
        if call.response_line is None:
            continue
        if call.response_line != call.request_line + 1 or call.response_line not in answers:
            yield f"call {call.sequence} is not answered in line {call.response_line} of {WIRE}"
        elif not _tells(call, wire[call.response_line - 1]):
            yield f"call {call.sequence} was not answered with what {CALLS} says"
    for number in sorted(answers - {call.response_line for call in calls}):
        if "error" not in _object(wire[number - 1]):
            yield f"line {number} of {WIRE} answers a call that {CALLS} does not have"


def _asks(call: GatewayCall, line: WireLine) -> bool:
    message = _object(line)
    params = message.get("params")
    if line.way != "in" or message.get("method") != "tools/call" or not isinstance(params, dict):
        return False
    given = params.get("arguments")
    if call.path is None or call.tool not in {READ, WRITE} or not isinstance(given, dict):
        return (call.tool != READ and call.tool != WRITE) or params.get("name") == call.tool
    content = given.get("content")
    written = digest_bytes(content.encode("utf-8", "surrogatepass")) if isinstance(content, str) else None
    return (
        params.get("name") == call.tool
        and given.get("path") == call.path
        and given.get("expected_sha256") == call.expected_sha256
        and (call.tool == READ or call.code != "ok" or written == call.after_sha256)
    )


def _tells(call: GatewayCall, line: WireLine) -> bool:
    told = told_by(line)
    if told is None:
        return call.tool not in OWN_TOOLS and "error" in _object(line)
    return (told.code, told.exit_code) == (call.code, call.exit_code) and (
        digest_bytes(told.stdout.encode("utf-8", "surrogatepass")),
        digest_bytes(told.stderr.encode("utf-8", "surrogatepass")),
    ) == (call.stdout_sha256, call.stderr_sha256)


def told_by(line: WireLine) -> Told | None:
    """Return what an answer on the wire says; null where it is an error of the protocol."""
    try:
        texts = [str(part["text"]) for part in _object(line)["result"]["content"]]
        head = json.loads(texts[0])
        parts = dict(zip(head["parts"], texts[1:], strict=True))
        return Told(head["code"], head["exit_code"], parts.get("stdout", ""), parts.get("stderr", ""))
    except (ValueError, LookupError, TypeError):
        return None


def _object(line: WireLine) -> dict[str, Any]:
    try:
        value = json.loads(message_of(line))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
