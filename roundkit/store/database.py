"""Opening the round's database: one writer, short transactions, readers that never block it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roundkit.store.attempts import AttemptTable
from roundkit.store.control import ControlTable
from roundkit.store.events import EventLog
from roundkit.store.experiments import AaTable, ExperimentTable
from roundkit.store.schema import migrate
from roundkit.store.steps import StepTable
from roundkit.store.tickets import TicketTable

_BUSY_MS = 10_000
_LOOK_AGAIN_S = 0.005


class RoundStore:
    """The store of one round. Each table has a small class of its own; writes go in transactions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.tickets = TicketTable(connection)
        self.experiments = ExperimentTable(connection)
        self.aa_checks = AaTable(connection)
        self.attempts = AttemptTable(connection)
        self.steps = StepTable(connection)
        self.events = EventLog(connection)
        self.control = ControlTable(connection)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Group writes: all of them reach the disk, or none."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # A full disk may have ended the transaction already, at a write or at the commit itself.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> RoundStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def store_exists(path: Path) -> bool:
    """Say whether a round has its database: a coordinator that only just started may not have made it yet."""
    if not path.exists():
        return False
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0]) > 0
    except sqlite3.OperationalError:
        return False  # it is being made
    finally:
        connection.close()


def open_snapshot(path: Path) -> RoundStore:
    """Open a copy, in memory, of a round's database as it is now.

    The copy is taken in one read that neither waits for a writer nor keeps one waiting; afterwards nothing
    of the round is held. An older schema is brought up to date in the copy alone.

    Raises:
        sqlite3.OperationalError: there is no database yet.
        ValueError: the database comes from a newer roundkit.
    """
    copy = sqlite3.connect(":memory:", isolation_level=None)
    source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        source.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        source.backup(copy)
    finally:
        source.close()
    migrate(copy)
    return RoundStore(copy)


def open_store(path: Path, *, read_only: bool = False) -> RoundStore:
    """Open the database of a round, creating it when a writer comes first.

    Args:
        path: The database file.
        read_only: Open for reading beside a running writer.

    Raises:
        sqlite3.OperationalError: there is no database yet, for a reader.
        ValueError: the database comes from a newer roundkit.
    """
    mode = "ro" if read_only else "rwc"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None)
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    connection.execute("PRAGMA foreign_keys = ON")
    if not read_only:
        _log_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")
        migrate(connection)
    return RoundStore(connection)


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Have the database written ahead, so that readers and the writer do not wait for each other.

    Two that make the same database at once meet here, and SQLite lets neither of them wait for the other.
    """
    until = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_LOOK_AGAIN_S)
        else:
            return
