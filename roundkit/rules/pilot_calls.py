"""A gateway's calls against the archived wire: what was asked and told, in the bytes that crossed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import Refused
from roundkit.models.pilot_trial import GatewayCall, WireLine
from roundkit.rules.pilot_answers import CALL, OWN_TOOLS, READ, WRITE, shown_name
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
    sha256: str | None


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
    name, given = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        return False
    if not isinstance(given, dict):
        given = {}
    if call.tool != shown_name(name):
        program = given.get("program")
        known = name == CALL and isinstance(program, str) and call.tool == shown_name(program)
        return known and call.tool not in OWN_TOOLS and _starts(call, given)
    if call.tool == CALL or name not in OWN_TOOLS:
        return call.code in {"malformed", "refused"} and not call.argv
    return not call.argv and _names(call, given) and _writes(call, given)


def _starts(call: GatewayCall, given: dict[str, Any]) -> bool:
    """Say whether a program was given these words; a call that was no such thing shows none."""
    return list(call.argv) == given.get("argv") or (call.code == "malformed" and not call.argv)


def _names(call: GatewayCall, given: dict[str, Any]) -> bool:
    """Say whether a call of the gateway's own named this file and digest, or was none that could."""
    stated = (call.path, call.expected_sha256)
    if stated == (given.get("path"), given.get("expected_sha256")):
        return True
    refused = call.code == "refused" and call.expected_sha256 in {None, given.get("expected_sha256")}
    return call.path is None and (refused or (call.code == "malformed" and call.expected_sha256 is None))


def _writes(call: GatewayCall, given: dict[str, Any]) -> bool:
    """Say whether what a write left is what it was given."""
    if call.tool != WRITE or call.code != "ok":
        return True
    content = given.get("content")
    return (
        isinstance(content, str)
        and digest_bytes(content.encode("utf-8", "surrogatepass")) == call.after_sha256
    )


def _tells(call: GatewayCall, line: WireLine) -> bool:
    told = told_by(line)
    if told is None:
        return call.tool not in OWN_TOOLS and "error" in _object(line)
    if told.sha256 != _digest_told(call):
        return False
    return (told.code, told.exit_code) == (call.code, call.exit_code) and (
        digest_bytes(told.stdout.encode("utf-8", "surrogatepass")),
        digest_bytes(told.stderr.encode("utf-8", "surrogatepass")),
    ) == (call.stdout_sha256, call.stderr_sha256)


def _digest_told(call: GatewayCall) -> str | None:
    """Return the digest that a call's answer names: of the file, where it read or wrote one."""
    if call.code != "ok":
        return None
    return {READ: call.found_sha256, WRITE: call.after_sha256}.get(call.tool)


def told_by(line: WireLine) -> Told | None:
    """Return what an answer on the wire says; null where it is an error of the protocol."""
    try:
        texts = [str(part["text"]) for part in _object(line)["result"]["content"]]
        head = json.loads(texts[0])
        parts = dict(zip(head["parts"], texts[1:], strict=True))
        return Told(
            head["code"],
            head["exit_code"],
            parts.get("stdout", ""),
            parts.get("stderr", ""),
            head.get("sha256"),
        )
    except (ValueError, LookupError, TypeError):
        return None


def _object(line: WireLine) -> dict[str, Any]:
    try:
        value = json.loads(message_of(line))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
