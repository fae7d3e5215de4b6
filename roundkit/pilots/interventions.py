"""The ledger of what people did to a running trial: made empty at its start, and only ever appended to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import now_utc
from roundkit.core.errors import Refused, refuse
from roundkit.core.lines import append_line, create_exclusively
from roundkit.evidence.pilot_layout import INTERVENTIONS, TRIALS
from roundkit.evidence.pilot_reader import PilotReader
from roundkit.models.pilot_review import Intervention, InterventionKind
from roundkit.models.pilot_trial import LedgerState
from roundkit.pilots.words import stated
from roundkit.rules.pilot_interventions import intervention_refusals, next_intervention
from roundkit.rules.pilot_lines import LinesProblem
from roundkit.rules.pilot_matrix import Attempt

MAX_LEDGER_BYTES = 1 << 20


def create_ledger(trial: Path) -> None:
    """Create a trial's ledger, empty: from then on, no line means that nobody intervened.

    Args:
        trial: The trial's folder.

    Raises:
        Refused: ``exists``; a link in its place is never followed.
    """
    create_exclusively(trial / INTERVENTIONS)


def grown_ledgers(pilot: Path, attempts: Iterable[Attempt]) -> Iterator[LedgerState]:
    """Yield the ledgers of attempts at slots that have more in them than their attempt's record binds.

    Args:
        pilot: The pilot's folder.
        attempts: Its attempts at slots. A ledger that cannot be read is left out, and its observation is
            ineligible.
    """
    reader = PilotReader(pilot)
    for attempt in attempts:
        files = attempt.record.files if attempt.record is not None else ()
        fixed = next((file.size for file in files if file.path == INTERVENTIONS), None)
        data = reader.artifact(f"{TRIALS}/{attempt.name}", INTERVENTIONS).data if fixed is not None else None
        if fixed is not None and data is not None and len(data) > fixed:
            yield LedgerState(attempt=attempt.name, size=len(data), sha256=digest_bytes(data))


def ledger_digest(pilot: Path, trial: str) -> str:
    """Return the digest of a trial's ledger as it stands, which is what to post of it.

    Raises:
        EvidenceProblem: it cannot be read.
    """
    return digest_bytes(PilotReader(pilot).read(f"{trial}/{INTERVENTIONS}", limit=MAX_LEDGER_BYTES))


def intervene(pilot: Path, trial: str, *, kind: InterventionKind, by: str, note: str) -> Intervention:
    """Record one intervention; several may do so at once.

    Args:
        pilot: The pilot's folder.
        trial: The trial's folder, relative to it.
        kind: What kind of intervention.
        by: Who did it.
        note: What was done; ``other`` needs one.

    Raises:
        Refused: ``note-needed``; ``bad-words``; ``bad-ledger`` where the lines are not whole; and what
            :func:`roundkit.core.lines.append_line` refuses. Nothing is written then.
    """
    if refusals := intervention_refusals(kind, note):
        raise Refused(refusals)
    if not os.path.lexists(pilot / trial / INTERVENTIONS):
        raise refuse(
            "missing-file",
            "the trial has not begun, so that nobody can have intervened",
            place=f"{trial}/{INTERVENTIONS}",
            remedy="name a tuple that `roundkit pilot status` shows as started",
        )
    made: list[Intervention] = []

    def entry(ledger: bytes) -> bytes:
        try:
            with stated():
                made.append(next_intervention(ledger, kind=kind, by=by, note=note, at_utc=now_utc()))
        except LinesProblem as problem:
            raise refuse(
                "bad-ledger",
                str(problem),
                place=f"{trial}/{INTERVENTIONS}",
                remedy="leave it as it is: the observation is ineligible, and its trial stays on record",
            ) from problem
        return made[-1].to_bytes()

    append_line(pilot, f"{trial}/{INTERVENTIONS}", entry, limit=MAX_LEDGER_BYTES)
    return made[-1]
