"""The log of a round as evidence: one canonical JSON object a line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import JsonValue

from roundkit.core.errors import Refused
from roundkit.evidence.problem import problem
from roundkit.models.base import Identifier, Record, UtcTime


class EventLike(Protocol):
    """Anything with a time (RFC 3339 text), a kind and fields: what the coordinator's log returns."""

    @property
    def time(self) -> str:
        """When it happened, UTC."""

    @property
    def kind(self) -> str:
        """What happened, in kebab case."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """What belongs to it, as JSON values."""


class Event(Record):
    """One thing that happened: when, what kind, and its fields."""

    time: UtcTime
    kind: Identifier
    fields: dict[str, JsonValue]


@dataclass(frozen=True)
class _Line:
    time: str
    kind: str
    fields: Mapping[str, Any]


def as_event_like(value: EventLike | Mapping[str, Any]) -> EventLike:
    """Return a mapping with ``time``, ``kind`` and ``fields`` as an event; anything else unchanged."""
    if isinstance(value, Mapping):
        return _Line(value["time"], value["kind"], value["fields"])
    return value


def events_bytes(events: Iterable[EventLike | Mapping[str, Any]]) -> bytes:
    """Return the bytes of ``events.jsonl``, in the order given."""
    lines = []
    for value in events:
        event = as_event_like(value)
        row = Event.model_validate(
            {"time": event.time, "kind": event.kind, "fields": dict(event.fields)}, strict=False
        )
        lines.append(row.to_bytes() + b"\n")
    return b"".join(lines)


def parse_events(data: bytes, *, place: str) -> tuple[Event, ...]:
    """Read ``events.jsonl``.

    Raises:
        EvidenceProblem: a line is not the canonical JSON of an event.
    """
    if data and not data.endswith(b"\n"):
        raise problem("malformed", "the last line has no end", where=place)
    return tuple(
        _parse_line(line, f"{place}: line {number}") for number, line in enumerate(data.splitlines(), 1)
    )


def _parse_line(line: bytes, place: str) -> Event:
    try:
        event = Event.from_bytes(line, place=place)
        written = event.to_bytes()  # its fields may hold a figure that canonical JSON does not have
    except (Refused, ValueError) as error:
        raise problem("malformed", f"not an event: {error}", where=place) from error
    if written != line:
        raise problem("not-canonical", "the line is not canonical JSON", where=place)
    return event
