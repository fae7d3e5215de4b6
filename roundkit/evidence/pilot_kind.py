"""Which kind of pilot a folder says that it holds."""

from __future__ import annotations

import json
from pathlib import Path

from roundkit.evidence import pilot_layout as layout
from roundkit.evidence.layout import MAX_INDEX_BYTES


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
