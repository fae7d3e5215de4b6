"""Tickets: accepted or rejected at intake, built, measured. A ticket has one verdict for good."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from roundkit.core.clock import format_utc
from roundkit.models.base import Provenance
from roundkit.models.lane import Manifest, TicketState
from roundkit.models.ledger import BEYOND_THE_CAP, CommandLog, RejectCause, RejectedSubmission, TicketRecord
from roundkit.models.verdict import VerdictRecord

_COLUMNS = (
    "key, ticket, lane, sequence, manifest, manifest_digest, intake_utc, state, reject_cause, reject_detail, "
    "candidate_commit, candidate_tree, verdict, measured_utc, provenance"
)
_BEYOND = ", ".join("?" * len(BEYOND_THE_CAP))


@dataclass(frozen=True)
class Waiting:
    """A queued ticket's place in the queue."""

    key: str
    lane: str
    sequence: int


class TicketTable:
    """All submissions of a round."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(
        self,
        *,
        key: str,
        ticket: str,
        manifest: Manifest,
        intake_utc: datetime,
        provenance: Provenance,
        reject_cause: RejectCause | None = None,
        reject_detail: str | None = None,
    ) -> TicketRecord:
        """Record an intake: queued, or rejected with its cause.

        Raises:
            sqlite3.IntegrityError: the key or the ticket's name is taken.
        """
        self._connection.execute(
            "INSERT INTO tickets (key, ticket, lane, sequence, manifest, manifest_digest, intake_utc, state, "
            "reject_cause, reject_detail, provenance) "
            "VALUES (?, ?, ?, (SELECT COALESCE(MAX(sequence), 0) + 1 FROM tickets), ?, ?, ?, ?, ?, ?, ?)",
            (
                key,
                ticket,
                manifest.lane,
                manifest.to_bytes(),
                manifest.content_digest(),
                format_utc(intake_utc),
                "queued" if reject_cause is None else "rejected",
                reject_cause,
                reject_detail,
                provenance,
            ),
        )
        return self.get(key)

    def get(self, key: str) -> TicketRecord:
        """Return one ticket.

        Raises:
            KeyError: there is no such ticket.
        """
        row = self._connection.execute(f"SELECT {_COLUMNS} FROM tickets WHERE key = ?", (key,)).fetchone()  # noqa: S608
        if row is None:
            raise KeyError(key)
        return self._record(row)

    def find(self, ticket: str) -> TicketRecord | None:
        """Return the ticket of that name, or None."""
        row = self._connection.execute("SELECT key FROM tickets WHERE ticket = ?", (ticket,)).fetchone()
        return self.get(row[0]) if row else None

    def has(self, key: str) -> bool:
        """Say whether a ticket with that key was recorded."""
        return self._connection.execute("SELECT 1 FROM tickets WHERE key = ?", (key,)).fetchone() is not None

    def all(self, state: TicketState | None = None) -> list[TicketRecord]:
        """Return tickets in order of intake, of one state or of all."""
        where, values = _where(state=state)
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM tickets {where} ORDER BY sequence",  # noqa: S608
            values,
        ).fetchall()
        return [self._record(row) for row in rows]

    def queue(self) -> list[Waiting]:
        """Return the queued tickets in order of intake, without what only their measurement needs."""
        rows = self._connection.execute(
            "SELECT key, lane, sequence FROM tickets WHERE state = 'queued' ORDER BY sequence"
        )
        return [Waiting(key, lane, sequence) for key, lane, sequence in rows]

    def count(self, *, lane: str | None = None, state: TicketState | None = None) -> int:
        """Count tickets of a lane, a state, or both."""
        where, values = _where(lane=lane, state=state)
        row = self._connection.execute(f"SELECT COUNT(*) FROM tickets {where}", values).fetchone()  # noqa: S608
        return int(row[0])

    def count_toward_cap(self, lane: str) -> int:
        """Count the distinct manifests that used up a lane's submission cap."""
        row = self._connection.execute(
            # By state, since that is what the index begins with.
            "SELECT COUNT(*) FROM tickets WHERE lane = ? AND ("  # noqa: S608
            "state IN ('queued', 'measuring', 'measured') "
            f"OR (state = 'rejected' AND reject_cause NOT IN ({_BEYOND})))",
            (lane, *BEYOND_THE_CAP),
        ).fetchone()
        return int(row[0])

    def set_candidate(self, key: str, commit: str, tree: str) -> None:
        """Record the candidate's commit and tree."""
        self._connection.execute(
            "UPDATE tickets SET candidate_commit = ?, candidate_tree = ? WHERE key = ?", (commit, tree, key)
        )

    def set_measuring(self, key: str) -> None:
        """Mark a queued ticket as being measured."""
        self._change("UPDATE tickets SET state = 'measuring' WHERE key = ? AND state = 'queued'", (key,))

    def requeue(self, key: str) -> None:
        """Put a ticket whose measurement broke back into the queue."""
        self._change("UPDATE tickets SET state = 'queued' WHERE key = ? AND state = 'measuring'", (key,))

    def reject(self, key: str, cause: RejectCause, detail: str) -> None:
        """Reject a queued ticket for good."""
        self._change(
            "UPDATE tickets SET state = 'rejected', reject_cause = ?, reject_detail = ? "
            "WHERE key = ? AND state = 'queued'",
            (cause, detail, key),
        )

    def set_verdict(self, key: str, verdict: VerdictRecord, measured_utc: datetime) -> None:
        """Record the one verdict of a ticket.

        Raises:
            LookupError: the ticket has a verdict or was rejected.
        """
        self._change(
            "UPDATE tickets SET state = 'measured', verdict = ?, measured_utc = ? "
            "WHERE key = ? AND state IN ('queued', 'measuring')",
            (verdict.to_bytes(), format_utc(measured_utc), key),
        )

    def replace_commands(self, key: str, logs: tuple[CommandLog, ...]) -> None:
        """Record how a candidate's build, probe and smoke ended."""
        self._connection.execute("DELETE FROM commands WHERE key = ?", (key,))
        self._connection.executemany(
            "INSERT INTO commands (key, position, log) VALUES (?, ?, ?)",
            [(key, position, log.to_bytes()) for position, log in enumerate(logs)],
        )

    def add_rejected_submission(self, rejected: RejectedSubmission) -> bool:
        """Record an outbox entry that never became a ticket; False when it was recorded before."""
        done = self._connection.execute(
            "INSERT OR IGNORE INTO rejected_submissions (lane, entry, cause, detail, intake_utc) "
            "VALUES (?, ?, ?, ?, ?)",
            (rejected.lane, rejected.entry, rejected.cause, rejected.detail, format_utc(rejected.intake_utc)),
        )
        return done.rowcount == 1

    def rejected_submissions(self) -> list[RejectedSubmission]:
        """Return the outbox entries that never became tickets."""
        rows = self._connection.execute(
            "SELECT lane, entry, cause, detail, intake_utc FROM rejected_submissions "
            "ORDER BY intake_utc, lane, entry"
        )
        return [
            RejectedSubmission(
                lane=lane, entry=entry, cause=cause, detail=detail, intake_utc=datetime.fromisoformat(time)
            )
            for lane, entry, cause, detail, time in rows
        ]

    def _change(self, statement: str, values: tuple[object, ...]) -> None:
        if self._connection.execute(statement, values).rowcount != 1:
            raise LookupError(
                f"the ticket is in no state for this change: {statement.split('WHERE')[0].strip()}"
            )

    def _record(self, row: tuple[object, ...]) -> TicketRecord:
        values = dict(zip(_COLUMNS.split(", "), row, strict=True))
        key = values["key"]
        logs = self._connection.execute("SELECT log FROM commands WHERE key = ? ORDER BY position", (key,))
        experiments = self._connection.execute(
            "SELECT experiment_id FROM experiments WHERE subject = ? ORDER BY position", (values["ticket"],)
        )
        values["manifest"] = Manifest.from_bytes(_blob(values["manifest"]), place="store: tickets")
        if values["verdict"] is not None:
            values["verdict"] = VerdictRecord.from_bytes(_blob(values["verdict"]), place="store: tickets")
        values["commands"] = tuple(
            CommandLog.from_bytes(bytes(log), place="store: commands") for (log,) in logs
        )
        values["experiments"] = tuple(name for (name,) in experiments)
        return TicketRecord.model_validate(values)


def _where(**wanted: str | None) -> tuple[str, tuple[str, ...]]:
    """Return a condition on what is given alone, so that the database can use its indexes."""
    given = {column: value for column, value in wanted.items() if value is not None}
    condition = " AND ".join(f"{column} = ?" for column in given)
    return (f"WHERE {condition}" if given else ""), tuple(given.values())


def _blob(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"a blob column held {type(value).__name__}")
    return value
