"""The attempts ledger: every run of a lane's agent, kept where no lane reaches. No entry is ever removed."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from roundkit.core.clock import format_utc
from roundkit.core.errors import refuse
from roundkit.models.agent_run import AgentRun
from roundkit.models.attempts import AttemptBinding, AttemptRecord, Cost
from roundkit.models.base import Provenance

_COLUMNS = "binding, phase, provenance, reserved_utc, claimed_utc, ended_utc, actual, run"
_SELECT = f"SELECT {_COLUMNS} FROM attempts"  # noqa: S608


class AttemptTable:
    """All attempts of a round, in order of reservation."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self, lane: str | None = None) -> list[AttemptRecord]:
        """Return the attempts of a lane, or of all."""
        rows = self._connection.execute(
            f"{_SELECT} WHERE ? IS NULL OR lane = ? ORDER BY position", (lane, lane)
        )
        return [_record(row) for row in rows]

    def find(self, binding: AttemptBinding) -> AttemptRecord | None:
        """Return the attempt with exactly this binding, or None when nothing of it is known.

        Raises:
            Refused: ``attempt-bound-differently``: its identity or its run id is bound to something else.
        """
        rows = self._connection.execute(
            f"{_SELECT} WHERE plan_digest = ? OR (lane = ? AND (ordinal = ? OR run_id = ?))",
            (binding.plan_digest, binding.lane, binding.ordinal, binding.run_id),
        )
        known = [_record(row) for row in rows]
        if other := next((record for record in known if record.binding != binding), None):
            raise refuse(
                "attempt-bound-differently",
                f"run {binding.run_id} asks for attempt {binding.ordinal} of lane {binding.lane}, and the "
                f"ledger holds attempt {other.binding.ordinal} for run {other.binding.run_id}",
                place=f"attempts: {binding.lane}",
                remedy="an attempt is never bound anew: ask for the lane's next one",
            )
        return known[0] if known else None

    def reserve(self, binding: AttemptBinding, provenance: Provenance, now: datetime) -> AttemptRecord:
        """Enter an attempt; for a binding that stands in the ledger, return what stands there.

        Runs within a transaction, in which whoever calls has checked the lane's capacity.

        Raises:
            Refused: ``attempt-bound-differently``.
        """
        known = self.find(binding)
        if known is not None:
            return known
        self._connection.execute(
            "INSERT INTO attempts "
            "(plan_digest, position, lane, ordinal, run_id, binding, provenance, phase, reserved_utc) "
            "VALUES (?, (SELECT COALESCE(MAX(position), 0) + 1 FROM attempts), ?, ?, ?, ?, ?, 'reserved', ?)",
            (
                binding.plan_digest,
                binding.lane,
                binding.ordinal,
                binding.run_id,
                binding.to_bytes(),
                provenance,
                format_utc(now),
            ),
        )
        return self.get(binding.plan_digest)

    def claim(self, plan_digest: str, now: datetime) -> bool:
        """Claim a reserved attempt; True for the one caller that may execute it, whoever else asks."""
        return self._change(
            "UPDATE attempts SET phase = 'claimed', claimed_utc = ? "
            "WHERE plan_digest = ? AND phase = 'reserved'",
            (format_utc(now), plan_digest),
        )

    def settle(self, plan_digest: str, actual: Cost, now: datetime) -> bool:
        """Record what a claimed attempt cost; False when it is not claimed, or settled already."""
        return self._change(
            "UPDATE attempts SET phase = 'settled', actual = ?, ended_utc = ? "
            "WHERE plan_digest = ? AND phase = 'claimed'",
            (actual.to_bytes(), format_utc(now), plan_digest),
        )

    def record_run(self, plan_digest: str, run: AgentRun) -> bool:
        """Keep what is known of a claimed attempt's run, once; False when it is not claimed, or has one."""
        return self._change(
            "UPDATE attempts SET run = ? WHERE plan_digest = ? AND phase = 'claimed' AND run IS NULL",
            (run.to_bytes(), plan_digest),
        )

    def cancel(self, plan_digest: str, now: datetime) -> bool:
        """Give up an attempt before anybody claimed it; False when it is not reserved any more."""
        return self._change(
            "UPDATE attempts SET phase = 'cancelled', ended_utc = ? "
            "WHERE plan_digest = ? AND phase = 'reserved'",
            (format_utc(now), plan_digest),
        )

    def get(self, plan_digest: str) -> AttemptRecord:
        """Return one attempt.

        Raises:
            KeyError: there is no such attempt.
        """
        row = self._connection.execute(f"{_SELECT} WHERE plan_digest = ?", (plan_digest,)).fetchone()
        if row is None:
            raise KeyError(plan_digest)
        return _record(row)

    def _change(self, statement: str, values: tuple[object, ...]) -> bool:
        # One statement looks and writes, so that of two processes exactly one changes the row.
        return self._connection.execute(statement, values).rowcount == 1


def _record(row: tuple[object, ...]) -> AttemptRecord:
    values = dict(zip(_COLUMNS.split(", "), row, strict=True))
    for name, model in (("binding", AttemptBinding), ("actual", Cost), ("run", AgentRun)):
        data = values[name]
        if isinstance(data, bytes):
            values[name] = model.from_bytes(data, place="store: attempts")
    return AttemptRecord.model_validate(values)
