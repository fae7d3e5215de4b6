"""The ledger of what people did to a running trial: made empty at its start, and only ever appended to."""

from __future__ import annotations

from pathlib import Path

from roundkit.core.clock import now_utc
from roundkit.core.errors import Refused, refuse
from roundkit.core.lines import append_line, create_exclusively
from roundkit.evidence.pilot_layout import INTERVENTIONS
from roundkit.models.pilot_review import Intervention, InterventionKind
from roundkit.pilots.words import stated
from roundkit.rules.pilot_interventions import intervention_refusals, next_intervention
from roundkit.rules.pilot_lines import LinesProblem

MAX_LEDGER_BYTES = 1 << 20


def create_ledger(trial: Path) -> None:
    """Create a trial's ledger, empty: from then on, no line means that nobody intervened.

    Args:
        trial: The trial's folder.

    Raises:
        Refused: ``exists``; a link in its place is never followed.
    """
    create_exclusively(trial / INTERVENTIONS)


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
