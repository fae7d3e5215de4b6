"""Experiments that were started, their records once complete, and the A/A checks among them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import format_utc, now_utc
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import AaCheck
from roundkit.models.measurement import Purpose


class ExperimentTable:
    """Every experiment of the round, in the order in which they were started."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def attempts(self, subject: str) -> int:
        """Return how many experiments were started for a subject."""
        row = self._connection.execute(
            "SELECT COUNT(*) FROM experiments WHERE subject = ?", (subject,)
        ).fetchone()
        return int(row[0])

    def begin(self, experiment_id: str, purpose: Purpose, subject: str, attempt: int) -> None:
        """Record that an experiment starts.

        Raises:
            sqlite3.IntegrityError: it was started before.
        """
        self._connection.execute(
            "INSERT INTO experiments (experiment_id, position, purpose, subject, attempt, started_utc) "
            "VALUES (?, (SELECT COALESCE(MAX(position), 0) + 1 FROM experiments), ?, ?, ?, ?)",
            (experiment_id, purpose, subject, attempt, format_utc(now_utc())),
        )

    def was_begun(self, experiment_id: str) -> bool:
        """Say whether an experiment of that name was ever started."""
        row = self._connection.execute(
            "SELECT 1 FROM experiments WHERE experiment_id = ?", (experiment_id,)
        ).fetchone()
        return row is not None

    def last_subject(self, purpose: Purpose) -> str | None:
        """Return the subject of the experiment for a purpose that was started last, None before the first."""
        row = self._connection.execute(
            "SELECT subject FROM experiments WHERE purpose = ? ORDER BY position DESC LIMIT 1", (purpose,)
        ).fetchone()
        return row[0] if row else None

    def cancel(self, experiment_id: str) -> None:
        """Forget an experiment that was never started, because its device was taken by somebody else."""
        self._connection.execute(
            "DELETE FROM experiments WHERE experiment_id = ? AND record IS NULL", (experiment_id,)
        )

    def finish(self, record: ExperimentRecord) -> None:
        """Keep the record of a started experiment.

        Raises:
            LookupError: it was not started, or has a record already.
        """
        done = self._connection.execute(
            "UPDATE experiments SET record = ? WHERE experiment_id = ? AND record IS NULL",
            (record.to_bytes(), record.experiment_id),
        )
        if done.rowcount != 1:
            raise LookupError(f"experiment {record.experiment_id} was not started, or is recorded already")

    def keep_late(self, record: ExperimentRecord) -> bool:
        """Keep the record of a run whose experiment has another record, or none for ever; say if it is new.

        It never takes the place of a record, so that no verdict ever rests on samples of two runs.

        Raises:
            LookupError: no such experiment was started.
        """
        row = self._connection.execute(
            "SELECT record FROM experiments WHERE experiment_id = ?", (record.experiment_id,)
        ).fetchone()
        if row is None:
            raise LookupError(f"experiment {record.experiment_id} was not started")
        data = record.to_bytes()
        if row[0] is not None and bytes(row[0]) == data:
            return False
        done = self._connection.execute(
            "INSERT OR IGNORE INTO duplicate_runs (experiment_id, sha256, record) VALUES (?, ?, ?)",
            (record.experiment_id, digest_bytes(data), data),
        )
        return done.rowcount == 1

    def duplicates(self) -> list[ExperimentRecord]:
        """Return every record that came in late, by experiment."""
        rows = self._connection.execute("SELECT record FROM duplicate_runs ORDER BY experiment_id, sha256")
        return [ExperimentRecord.from_bytes(bytes(row[0]), place="store: duplicate_runs") for row in rows]

    def records(self, subject: str | None = None) -> list[ExperimentRecord]:
        """Return the finished records, oldest first, of one subject or of all."""
        # Two statements: with a condition that may be void, every record would be gone through.
        one, values = ("", ()) if subject is None else ("subject = ? AND ", (subject,))
        rows = self._connection.execute(
            f"SELECT record FROM experiments WHERE {one}record IS NOT NULL ORDER BY position",  # noqa: S608
            values,
        )
        return [ExperimentRecord.from_bytes(bytes(row[0]), place="store: experiments") for row in rows]

    def by_id(self, experiment_ids: Iterable[str]) -> dict[str, ExperimentRecord]:
        """Return the finished records of some experiments."""
        found = {}
        for experiment_id in experiment_ids:
            row = self._connection.execute(
                "SELECT record FROM experiments WHERE experiment_id = ? AND record IS NOT NULL",
                (experiment_id,),
            ).fetchone()
            if row is not None:
                found[experiment_id] = ExperimentRecord.from_bytes(bytes(row[0]), place="store: experiments")
        return found

    def places(self, experiment_ids: Iterable[str]) -> dict[str, tuple[str | None, str | None]]:
        """Return machine and device set of some finished experiments, without reading their samples."""
        found = {}
        for experiment_id in experiment_ids:
            row = self._connection.execute(
                "SELECT json_extract(CAST(record AS TEXT), '$.machine_sha256'), "
                "json_extract(CAST(record AS TEXT), '$.lease.device_set') "
                "FROM experiments WHERE experiment_id = ? AND record IS NOT NULL",
                (experiment_id,),
            ).fetchone()
            if row is not None:
                found[experiment_id] = (row[0], row[1])
        return found

    def unfinished(self) -> list[tuple[str, str]]:
        """Return id and subject of experiments that were started and have no record."""
        rows = self._connection.execute(
            "SELECT experiment_id, subject FROM experiments WHERE record IS NULL ORDER BY position"
        )
        return [(experiment_id, subject) for experiment_id, subject in rows]


class AaTable:
    """The A/A checks of the round, in order."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, check: AaCheck, after_tickets: int) -> None:
        """Append a check, with the number of tickets that had been measured before it."""
        self._connection.execute(
            "INSERT INTO aa_checks (position, experiment_id, after_tickets, body) "
            "VALUES ((SELECT COALESCE(MAX(position), 0) + 1 FROM aa_checks), ?, ?, ?)",
            (check.experiment, after_tickets, check.to_bytes()),
        )

    def all(self) -> list[AaCheck]:
        """Return every check, oldest first."""
        rows = self._connection.execute("SELECT body FROM aa_checks ORDER BY position")
        return [AaCheck.from_bytes(bytes(row[0]), place="store: aa_checks") for row in rows]

    def count(self) -> int:
        """Return how many checks there were."""
        return int(self._connection.execute("SELECT COUNT(*) FROM aa_checks").fetchone()[0])

    def last_after_tickets(self) -> int | None:
        """Return how many tickets had been measured at the last check; None before the first."""
        row = self._connection.execute("SELECT MAX(after_tickets) FROM aa_checks").fetchone()
        return None if row[0] is None else int(row[0])
