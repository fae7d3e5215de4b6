"""Where ledgers lie: round directories, evidence folders and exported frames, found without opening any."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from roundkit.core.errors import refuse

FRAMES_FILE = "frames.json"
"""What marks a folder of exported frames."""

_ENDING = ".parquet"
Kind = Literal["evidence", "round", "frames"]
Wanted = TypeVar("Wanted")


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
            remedy="name a round directory, an evidence folder, an export, or a folder above them: `roundkit "
            "prepare`, `close` and `export` make them",
        )
    return found


def nearest(wanted: str) -> str:
    """Return a place, or a glob, as it is found from this folder or the nearest one above it."""
    here = Path.cwd()
    found = (str(folder / wanted) for folder in (here, *here.parents) if _roots(folder / wanted))
    return next(found, wanted)


def folders_below(
    wanted: str | Path, kind_of: Callable[[Path, frozenset[str]], Wanted | None]
) -> Iterator[tuple[Path, Wanted]]:
    """Yield every folder of a kind at, below or matching a place; no link is followed, none inside another.

    Args:
        wanted: A folder, or a glob over some.
        kind_of: Says what a folder is from the names of its files; null to look below it.
    """
    waiting = _roots(wanted)
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as listing:
                entries = {entry.name: entry for entry in listing}
        except OSError:
            continue
        kind = kind_of(
            folder, frozenset(name for name, entry in entries.items() if entry.is_file(follow_symlinks=False))
        )
        if kind is not None:
            yield folder, kind
            continue
        waiting.extend(
            folder / name
            for name, entry in entries.items()
            if not name.startswith(".") and entry.is_dir(follow_symlinks=False)
        )


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
    found: Iterator[tuple[Path, Kind]] = folders_below(root, _kind_of)
    for folder, kind in found:
        yield Place(folder, kind)


def _kind_of(folder: Path, names: frozenset[str]) -> Kind | None:
    """Say what a folder is, by the names of the files in it."""
    if "index.json" in names:
        return "evidence"
    store = folder / "store"
    is_round = "round-plan.json" in names and store.is_dir() and not store.is_symlink()
    if is_round or "evidence-pointer.json" in names:
        return "round"
    return "frames" if FRAMES_FILE in names else None
