"""The database's tables, by version. A migration is one more entry in the list."""

from __future__ import annotations

import sqlite3

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE control (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    CREATE TABLE tickets (
        key TEXT PRIMARY KEY,
        ticket TEXT NOT NULL UNIQUE,
        lane TEXT NOT NULL,
        sequence INTEGER NOT NULL UNIQUE,
        manifest BLOB NOT NULL,
        manifest_digest TEXT NOT NULL,
        intake_utc TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('queued', 'measuring', 'measured', 'rejected')),
        reject_cause TEXT,
        reject_detail TEXT,
        candidate_commit TEXT,
        candidate_tree TEXT,
        verdict BLOB,
        measured_utc TEXT,
        provenance TEXT NOT NULL,
        CHECK ((state = 'rejected') = (reject_cause IS NOT NULL)),
        CHECK ((state = 'measured') = (verdict IS NOT NULL))
    ) STRICT;
    CREATE INDEX tickets_by_state ON tickets (state, lane, sequence);
    CREATE TABLE rejected_submissions (
        lane TEXT NOT NULL,
        entry TEXT NOT NULL,
        cause TEXT NOT NULL,
        detail TEXT NOT NULL,
        intake_utc TEXT NOT NULL,
        PRIMARY KEY (lane, entry)
    ) STRICT;
    CREATE TABLE commands (
        key TEXT NOT NULL REFERENCES tickets (key),
        position INTEGER NOT NULL,
        log BLOB NOT NULL,
        PRIMARY KEY (key, position)
    ) STRICT;
    CREATE TABLE experiments (
        experiment_id TEXT PRIMARY KEY,
        position INTEGER NOT NULL UNIQUE,
        purpose TEXT NOT NULL,
        subject TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        started_utc TEXT NOT NULL,
        record BLOB,
        UNIQUE (subject, attempt)
    ) STRICT;
    CREATE TABLE aa_checks (
        position INTEGER PRIMARY KEY,
        experiment_id TEXT NOT NULL REFERENCES experiments (experiment_id),
        after_tickets INTEGER NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
    CREATE TABLE steps (name TEXT PRIMARY KEY, body BLOB NOT NULL, time TEXT NOT NULL) STRICT;
    CREATE TABLE events (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        time TEXT NOT NULL,
        kind TEXT NOT NULL,
        fields TEXT NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE attempts (
        plan_digest TEXT PRIMARY KEY,
        position INTEGER NOT NULL UNIQUE,
        lane TEXT NOT NULL,
        ordinal INTEGER NOT NULL CHECK (ordinal >= 1),
        run_id TEXT NOT NULL,
        binding BLOB NOT NULL,
        provenance TEXT NOT NULL,
        phase TEXT NOT NULL CHECK (phase IN ('reserved', 'claimed', 'settled', 'cancelled')),
        reserved_utc TEXT NOT NULL,
        claimed_utc TEXT,
        ended_utc TEXT,
        actual BLOB,
        UNIQUE (lane, ordinal),
        UNIQUE (lane, run_id),
        CHECK ((phase IN ('claimed', 'settled')) = (claimed_utc IS NOT NULL)),
        CHECK ((phase IN ('settled', 'cancelled')) = (ended_utc IS NOT NULL)),
        CHECK ((phase = 'settled') = (actual IS NOT NULL))
    ) STRICT;
    """,
    """
    ALTER TABLE attempts ADD COLUMN run BLOB CHECK (run IS NULL OR phase IN ('claimed', 'settled'))
    """,
    """
    CREATE TABLE duplicate_runs (
        experiment_id TEXT NOT NULL REFERENCES experiments (experiment_id),
        sha256 TEXT NOT NULL,
        record BLOB NOT NULL,
        PRIMARY KEY (experiment_id, sha256)
    ) STRICT
    """,
)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a database to the newest schema, in one transaction: no reader sees half of it.

    Two processes may do so at once: each looks again at the version once it alone may write.

    Raises:
        ValueError: the database comes from a newer roundkit.
    """
    if _version(connection) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for migration in MIGRATIONS[_version(connection) :]:
            for statement in migration.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    """Return the schema of a database, 0 for a new one."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise ValueError(
            f"the store has schema {version}, this roundkit knows {len(MIGRATIONS)}; use a newer roundkit"
        )
    return version
