"""What an owner asked a running serve to do, and why the queue is paused."""

from __future__ import annotations

import sqlite3
from typing import Literal

ControlKey = Literal["paused", "drain", "resume-needs-aa", "waiting"]
_STOPPED_LANE = "stopped-lane:"


class ControlTable:
    """Requests and states that outlive a process. A missing key means no."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, key: ControlKey) -> str | None:
        """Return the reason that stands under a key, or None."""
        row = self._connection.execute("SELECT value FROM control WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def put(self, key: ControlKey, reason: str) -> None:
        """Set a key with its reason."""
        self._put(key, reason)

    def clear(self, key: ControlKey) -> None:
        """Take a key back."""
        self._connection.execute("DELETE FROM control WHERE key = ?", (key,))

    def stop_lane(self, lane: str, reason: str) -> None:
        """End a lane's intake."""
        self._put(f"{_STOPPED_LANE}{lane}", reason)

    def stopped_lanes(self) -> frozenset[str]:
        """Return the lanes whose intake was ended by hand."""
        rows = self._connection.execute("SELECT key FROM control WHERE key LIKE ?", (f"{_STOPPED_LANE}%",))
        return frozenset(key.removeprefix(_STOPPED_LANE) for (key,) in rows)

    def _put(self, key: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO control (key, value) VALUES (?, ?)", (key, value))
