"""Which kind of evidence a folder says that it holds; nothing is believed of it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from roundkit.evidence import layout, pilot_layout, wave_layout
from roundkit.evidence.pilot_kind import pilot_kind

EvidenceKind = Literal["round", "paired", "policy", "waves"]


def evidence_kind(path: Path) -> EvidenceKind:
    """Return who is to look at a folder; a folder that says nothing is taken for a round's."""
    if _has(path, layout.INDEX):
        return "round"
    if _has(path, wave_layout.INDEX) or _has(path, wave_layout.LEDGER):
        return "waves"
    if _has(path, pilot_layout.PUBLISHED):
        return "paired"
    match pilot_kind(path):
        case "paired":
            return "paired"
        case "policy":
            return "policy"
        case _:
            return "round"


def _has(folder: Path, name: str) -> bool:
    try:
        return (folder / name).exists()
    except OSError:
        return False  # whoever reads it says what is wrong
