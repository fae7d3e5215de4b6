"""Where ledgers lie: round directories, evidence folders and exported frames, found without opening any."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from roundkit.core.errors import refuse

FRAMES_FILE = "frames.json"
"""What marks a folder of exported frames."""

_ENDING = ".parquet"
Kind = Literal["evidence", "round", "frames"]


@dataclass(frozen=True, order=True)
class Place:
    """A ledger on the disk: the folder that holds it, or one Parquet file named after its table."""

    path: Path
    kind: Kind


def find_places(wanted: Iterable[str | Path]) -> list[Place]:
    """Return every ledger at, below or matching a place, each once, sorted by path.

    No link is followed, hidden folders are passed over, and nothing is looked for inside a ledger.

    Args:
        wanted: Folders, Parquet files, or globs over either.

    Raises:
        Refused: ``no-ledger`` when nothing is found.
    """
    asked = list(wanted)
    found = sorted({place for each in asked for root in _roots(each) for place in _below(root)})
    if not found:
        raise refuse(
            "no-ledger",
            f"no evidence, no round and no exported frames at {', '.join(str(each) for each in asked)}",
            remedy="name a round directory, an evidence folder, an export, or a folder above them",
        )
    return found


def nearest(wanted: str) -> str:
    """Return a place, or a glob, as it is found from this folder or the nearest one above it."""
    here = Path.cwd()
    found = (str(folder / wanted) for folder in (here, *here.parents) if _roots(folder / wanted))
    return next(found, wanted)


def _roots(wanted: str | Path) -> list[Path]:
    path = Path(wanted)
    if path.exists():
        return [path]
    return [Path(match) for match in glob.glob(str(wanted), recursive=True)]  # noqa: PTH207


def _below(root: Path) -> Iterator[Place]:
    if root.is_file():
        if root.suffix == _ENDING:
            yield Place(root, "frames")
        return
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as listing:
                entries = {entry.name: entry for entry in listing}
        except OSError:
            continue
        kind = _kind_of(entries)
        if kind is not None:
            yield Place(folder, kind)
            continue
        waiting.extend(
            folder / name
            for name, entry in entries.items()
            if not name.startswith(".") and entry.is_dir(follow_symlinks=False)
        )


def _kind_of(entries: dict[str, os.DirEntry[str]]) -> Kind | None:
    """Say what a folder is, by the names in it."""
    if _is_file(entries.get("index.json")):
        return "evidence"
    if _is_file(entries.get("evidence-pointer.json")):
        return "round"
    store = entries.get("store")
    if _is_file(entries.get("round-plan.json")) and store and store.is_dir(follow_symlinks=False):
        return "round"
    return "frames" if _is_file(entries.get(FRAMES_FILE)) else None


def _is_file(entry: os.DirEntry[str] | None) -> bool:
    return entry is not None and entry.is_file(follow_symlinks=False)
