"""Pilots of both kinds and wave campaigns among some places, as frames beside those of rounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import polars as pl

from roundkit.analysis.catalog import EXPORTED, any_table
from roundkit.analysis.columns import TABLES
from roundkit.analysis.exported import Format, read_frames, write_frames
from roundkit.analysis.ledgers import load
from roundkit.analysis.pilot_columns import PILOT_TABLES
from roundkit.analysis.pilots import pilot_frames
from roundkit.analysis.places import folders_below
from roundkit.analysis.policy import policy_frames
from roundkit.analysis.policy_columns import POLICY_EXPORTED
from roundkit.analysis.wave_columns import WAVE_TABLES
from roundkit.analysis.waves import load_waves
from roundkit.core.errors import Refused, RoundkitError
from roundkit.core.progress import SILENT, Progress
from roundkit.evidence import pilot_layout

_MOST_PLAN_BYTES = 64 << 20
_WAVES = "roundkit-wave-plan/"
Kind = Literal["paired", "policy", "waves"]
_TABLES: dict[Kind, Collection[str]] = {
    "paired": PILOT_TABLES,
    "policy": POLICY_EXPORTED,
    "waves": WAVE_TABLES,
}
Parts = dict[str, list[pl.LazyFrame]]


@dataclass(frozen=True)
class Exported:
    """What an export wrote, and what could not be read."""

    files: tuple[Path, ...]
    problems: tuple[str, ...]


def export_places(
    places: Sequence[str],
    out: Path,
    form: Format = "parquet",
    *,
    tables: Iterable[str] = (),
    strict: bool = True,
    progress: Progress = SILENT,
) -> Exported:
    """Write every frame of what lies at some places into a new folder, one file each.

    Args:
        places: Folders, Parquet files, or globs over either: rounds, evidence, exports, pilots, campaigns.
        out: The folder to make.
        form: What to write.
        tables: Only these frames; all that have rows where none is named.
        strict: Whether something that cannot be read is an error; else it stands in ``problems``.
        progress: Shows how many places were opened.

    Raises:
        Refused: ``unknown-table``, ``no-ledger`` where there is nothing of any kind, or what
            :func:`roundkit.analysis.load` and :func:`roundkit.analysis.write_frames` refuse.
    """
    chosen = [any_table(table) for table in tables] or list(EXPORTED)
    found = list(_found(places))
    parts, problems = _parts(found, chosen, strict=strict)
    try:
        ledgers = load(list(places), strict=strict, progress=progress)
    except Refused as refused:
        if not found or refused.refusals[0].code != "no-ledger":
            raise
        return Exported(tuple(write_frames(_whole(parts), out, form)), tuple(problems))
    for place in ledgers.places:
        try:
            exported = read_frames(place.path) if place.kind == "frames" else {}
        except RoundkitError:
            if strict:
                raise
            continue  # the problems of the ledgers say so
        for name in exported.keys() & set(chosen) - TABLES.keys():
            parts.setdefault(name, []).append(exported[name])
    own = {name: ledgers.table(name) for name in chosen if name in TABLES}
    files = write_frames({**own, **_whole(parts)}, out, form)
    return Exported(tuple(files), (*ledgers.problems, *problems))


def _found(places: Sequence[str]) -> Iterator[tuple[Kind, Path]]:
    """Yield every pilot and campaign, each once, sorted by path; nothing is looked for inside one."""
    seen: dict[Path, Kind] = {}
    for place in places:
        seen |= dict(folders_below(place, _kind_of))
    for folder in sorted(seen):
        yield seen[folder], folder


def _kind_of(folder: Path, names: frozenset[str]) -> Kind | None:
    """Say what a folder is, by the names of the files in it."""
    if pilot_layout.PUBLISHED in names:
        return "paired"
    if pilot_layout.PLAN not in names:
        return None
    try:
        with (folder / pilot_layout.PLAN).open("rb") as stream:
            plan = json.loads(stream.read(_MOST_PLAN_BYTES))
        kind, form = plan.get("kind"), str(plan.get("format"))
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    if kind in {"paired", "policy"}:
        return cast(Kind, kind)
    return "waves" if form.startswith(_WAVES) else None


def _whole(parts: Parts) -> dict[str, pl.LazyFrame]:
    """Return each frame as one, in the order of the tables."""
    return {name: pl.concat(parts[name]) for name in EXPORTED if name in parts}


def _parts(
    found: Iterable[tuple[Kind, Path]], chosen: Sequence[str], *, strict: bool
) -> tuple[Parts, list[str]]:
    parts: Parts = {}
    problems = []
    for kind, folder in found:
        tables = [name for name in chosen if name in _TABLES[kind]]
        try:
            table = _opened(kind, folder)
            made = {name: table(name) for name in tables}
        except RoundkitError as error:
            if strict:
                raise
            problems.append(f"{folder.name}: {error}")
            continue
        for name, frame in made.items():
            parts.setdefault(name, []).append(frame)
    return parts, problems


def _opened(kind: Kind, folder: Path) -> Callable[[str], pl.LazyFrame]:
    match kind:
        case "paired":
            return pilot_frames(folder).table
        case "policy":
            return policy_frames(folder).table
        case "waves":
            return load_waves(folder).table
