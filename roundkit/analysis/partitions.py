"""Frames too long for one file: Parquet in parts, a folder a campaign, written and read piece by piece.

A table is ``<table>/campaign=<id>/part-00000.parquet`` and so on; what is no plain letter in the name of an
imported campaign is written as in an address (``%2F``). The parts of a campaign follow one another
in the order in which they were given, so that what is asked of one campaign, or of a stretch of time, opens
the files that hold it and no others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

import polars as pl

import roundkit
from roundkit.analysis.exported import FRAMES_FORMAT, explain_unwritten, known
from roundkit.analysis.frame_checks import check_frame
from roundkit.analysis.places import FRAMES_FILE
from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write

ROWS_A_PART = 1_000_000
"""So many rows make a file of some tens of megabytes: few enough files, and few enough rows at once."""

_ROWS_A_GROUP = 128_000


def add_parts(
    table: str, frames: Iterable[pl.DataFrame], folder: Path, *, rows_a_part: int = ROWS_A_PART
) -> list[Path]:
    """Write rows of one table below a folder of exported frames, after those that are there.

    No more than one part is held in memory. A part is written beside its place and renamed, so that a reader
    sees whole parts only; of a write that was killed, the parts that were finished stay.

    Args:
        table: The table; its columns are checked.
        frames: The rows, in the order in which they are to be read; each frame as large as the caller likes.
        folder: The folder; made when missing.
        rows_a_part: How many rows make a part.

    Returns:
        The parts, in order.

    Raises:
        Refused: ``unknown-table``, ``exists``: the folder has the table as one file, or what
            :func:`check_frame` raises.
        OSError, RoundkitError: a part cannot be written.
    """
    if (folder / f"{known(table)}.parquet").exists():
        raise refuse(
            "exists", f"{folder} has {table} as one file", place=str(folder), remedy="name another folder"
        )
    waiting: dict[str, list[pl.DataFrame]] = {}
    written: list[Path] = []
    for frame in frames:
        checked = check_frame(table, frame).collect()
        for (campaign,), rows in checked.partition_by("campaign", as_dict=True, maintain_order=True).items():
            waiting.setdefault(str(campaign), []).append(rows)
        for campaign in list(waiting):
            if sum(rows.height for rows in waiting[campaign]) >= rows_a_part:
                written += _write_parts(folder, table, campaign, waiting, rows_a_part, last=False)
    for campaign in list(waiting):
        written += _write_parts(folder, table, campaign, waiting, rows_a_part, last=True)
    _note(folder)
    return written


def _write_parts(
    folder: Path, table: str, campaign: str, waiting: dict[str, list[pl.DataFrame]], size: int, *, last: bool
) -> Iterator[Path]:
    rows = pl.concat(waiting.pop(campaign))
    # Names of imported campaigns are anybody's: none may lead elsewhere, or be read back as another.
    place = folder / table / f"campaign={quote(campaign, safe='')}"
    place.mkdir(parents=True, exist_ok=True)
    number = len(list(place.glob("part-*.parquet")))
    while rows.height >= size or (last and rows.height):
        part = place / f"part-{number:05d}.parquet"
        beside = part.with_name(f".{part.name}.tmp")
        with explain_unwritten(beside, shown=part):
            rows.head(size).drop("campaign").write_parquet(beside, row_group_size=_ROWS_A_GROUP)
        beside.rename(part)
        yield part
        rows, number = rows.slice(size), number + 1
    if rows.height:
        waiting[campaign] = [rows]


def _note(folder: Path) -> None:
    tables = {path.name for path in folder.iterdir() if path.is_dir()}
    tables |= {path.stem for path in folder.glob("*.parquet")}
    about = {"format": FRAMES_FORMAT, "tables": sorted(tables), "tool_version": roundkit.__version__}
    atomic_write(folder / FRAMES_FILE, (json.dumps(about, indent=1, sort_keys=True) + "\n").encode())
