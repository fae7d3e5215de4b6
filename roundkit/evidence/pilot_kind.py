"""Which kind of pilot a folder says that it holds."""

from __future__ import annotations

import json
from pathlib import Path

from roundkit.evidence import pilot_layout as layout
from roundkit.evidence.layout import MAX_INDEX_BYTES
from roundkit.evidence.problem import problem

PAIRED = "paired"


def pilot_kind(root: Path) -> str | None:
    """Return what the frozen plan in a folder names as its kind; None where it names none.

    Nothing is believed of it: it only says who is to look at the folder.
    """
    try:
        with (root / layout.PLAN).open("rb") as stream:
            kind = json.loads(stream.read(MAX_INDEX_BYTES))["kind"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return kind if isinstance(kind, str) else None


def require_paired(root: Path) -> None:
    """Refuse a pilot without trials: interventions, reviews and replays are each of one trial.

    A folder without a plan that can be read is left to whoever reads it.

    Raises:
        EvidenceProblem: ``other-kind``.
    """
    kind = pilot_kind(root)
    if kind not in {None, PAIRED}:
        raise problem(
            "other-kind",
            f"{root.name} is a pilot of kind {kind}, whose runs are whole rounds and no trials",
            where=layout.PLAN,
            remedy="`intervene`, `review` and `replay` are for the trials of a paired pilot; what a policy "
            "pilot did, `pilot audit` and `pilot report` tell",
        )
