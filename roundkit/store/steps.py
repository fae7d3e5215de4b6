"""Steps of ``close`` that are finished, each with what it decided: where a killed close goes on."""

from __future__ import annotations

import sqlite3

from roundkit.core.clock import format_utc, now_utc


class StepTable:
    """Finished steps by name; a step is written once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, name: str) -> bytes | None:
        """Return what a finished step left, or None when it is not finished."""
        row = self._connection.execute("SELECT body FROM steps WHERE name = ?", (name,)).fetchone()
        return bytes(row[0]) if row else None

    def put(self, name: str, body: bytes) -> None:
        """Record a finished step.

        Raises:
            sqlite3.IntegrityError: it was recorded before.
        """
        self._connection.execute(
            "INSERT INTO steps (name, body, time) VALUES (?, ?, ?)", (name, body, format_utc(now_utc()))
        )

    def names(self) -> list[str]:
        """Return the names of finished steps, oldest first."""
        return [name for (name,) in self._connection.execute("SELECT name FROM steps ORDER BY time, rowid")]
