"""A trial's ledger of interventions: what makes it whole, and what its next line is."""

from __future__ import annotations

from datetime import datetime

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import Refusal
from roundkit.models.pilot_review import Intervention, InterventionKind
from roundkit.rules.pilot_lines import LinesProblem, read_lines

LEDGER_NAME = "interventions.jsonl"


def read_interventions(data: bytes) -> tuple[Intervention, ...]:
    """Read a ledger; an empty one says that nobody intervened.

    Raises:
        LinesProblem: cut off, malformed, with a gap, out of order, or with an earlier line changed.
    """
    found = read_lines(data, Intervention, name=LEDGER_NAME)
    before = 0
    for number, entry in enumerate(found, start=1):
        if entry.sequence != number:
            raise LinesProblem(f"{LEDGER_NAME} line {number} has sequence {entry.sequence}")
        if entry.before_sha256 != digest_bytes(data[:before]):
            raise LinesProblem(f"{LEDGER_NAME} line {number} does not follow the lines before it")
        if number > 1 and entry.at_utc < found[number - 2].at_utc:
            raise LinesProblem(f"{LEDGER_NAME} line {number} is earlier than the line before it")
        before += len(entry.to_bytes()) + 1
    return found


def next_intervention(
    ledger: bytes, *, kind: InterventionKind, by: str, note: str, at_utc: datetime
) -> Intervention:
    """Return the entry that follows a ledger's bytes.

    Raises:
        LinesProblem: the ledger is not whole, or its last entry is later than ``at_utc``.
    """
    known = read_interventions(ledger)
    if known and known[-1].at_utc > at_utc:
        raise LinesProblem(f"{LEDGER_NAME} ends with an entry from later than now: a clock went backwards")
    return Intervention(
        sequence=len(known) + 1,
        before_sha256=digest_bytes(ledger),
        at_utc=at_utc,
        kind=kind,
        by=by,
        note=note,
    )


def intervention_refusals(kind: InterventionKind, note: str) -> list[Refusal]:
    """Return why an intervention may not be recorded as it was said."""
    if kind != "other" or note.strip():
        return []
    return [
        Refusal("note-needed", "kind 'other' says nothing by itself", "--note", "say in a note what was done")
    ]
