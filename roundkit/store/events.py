"""What happened, in order: an append-only log beside the records."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from roundkit.core.canonical import canonical_bytes
from roundkit.core.clock import format_utc, now_utc

INTERRUPTED = "experiment-interrupted"
"""Kind of the event about an experiment that a killed process had begun: it never has a record."""


@dataclass(frozen=True)
class Event:
    """One thing that happened: when, what kind, and its fields as JSON values."""

    time: str
    kind: str
    fields: dict[str, Any]


class EventLog:
    """The events of a round."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, kind: str, **fields: Any) -> None:
        """Append an event with the current time."""
        self._connection.execute(
            "INSERT INTO events (time, kind, fields) VALUES (?, ?, ?)",
            (format_utc(now_utc()), kind, canonical_bytes(fields).decode()),
        )

    def all(self, kind: str | None = None) -> list[Event]:
        """Return the events of a kind, or every one, oldest first."""
        rows = self._connection.execute(
            "SELECT time, kind, fields FROM events WHERE kind = COALESCE(?, kind) ORDER BY position", (kind,)
        )
        return [Event(time, kind, json.loads(fields)) for time, kind, fields in rows]
