"""Frames on the disk: written as Parquet, CSV or JSON, and Parquet read back lazily."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, get_args

import polars as pl

import roundkit
from roundkit.analysis.catalog import any_table, check_any
from roundkit.analysis.columns import TABLES
from roundkit.analysis.frame_checks import known_in
from roundkit.analysis.places import FRAMES_FILE
from roundkit.core.errors import RoundkitError, refuse
from roundkit.core.files import atomic_write, takes_no_file, whole_folder

Format = Literal["parquet", "csv", "json"]
FRAMES_FORMAT = "roundkit-frames/1"
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_frames(frames: Mapping[str, pl.LazyFrame], folder: Path, form: Format = "parquet") -> list[Path]:
    """Write frames into a new folder, one file each, whole or not at all.

    Args:
        frames: Frames by table; each is checked against its declared columns. Empty ones are left out.
        folder: The folder to make.
        form: ``parquet``, which :func:`roundkit.analysis.load` reads back; ``csv``, where a list of samples
            is text and a text that a spreadsheet would run as a formula begins with ``'``; or ``json``, a
            list of rows.

    Returns:
        The files, in the order of the tables.

    Raises:
        Refused: ``unknown-format``, ``exists``, ``nothing-to-write``, ``unknown-table``, ``malformed`` for an
            export whose rows are damaged, or what :func:`roundkit.analysis.check_frame` raises.
        OSError, RoundkitError: a file cannot be written, and nothing of the folder is there then.
    """
    if form not in get_args(Format):
        raise refuse("unknown-format", f"there is no format {form!r}", remedy=" or ".join(get_args(Format)))
    if not _is_free(folder):
        raise refuse("exists", f"{folder} exists", place=str(folder), remedy="name a folder that does not")
    checked = {table: _collected(any_table(table), frame) for table, frame in frames.items()}
    filled = {table: frame for table, frame in checked.items() if frame.height}
    if not filled:
        raise refuse("nothing-to-write", "every one of these frames is empty", place=str(folder))
    with whole_folder(folder) as partial:
        for table, frame in filled.items():
            with explain_unwritten(partial / f"{table}.{form}", shown=folder / f"{table}.{form}"):
                _write(frame, partial / f"{table}.{form}", form)
        if form == "parquet":
            about = {"format": FRAMES_FORMAT, "tables": sorted(filled), "tool_version": roundkit.__version__}
            atomic_write(partial / FRAMES_FILE, (json.dumps(about, indent=1, sort_keys=True) + "\n").encode())
    return [folder / f"{table}.{form}" for table in filled]


def read_frames(path: Path) -> dict[str, pl.LazyFrame]:
    """Return exported frames without reading their rows.

    Args:
        path: A folder that :func:`write_frames` wrote as Parquet, one of tables in parts, or one Parquet
            file named after its table.

    Raises:
        Refused: ``unknown-table``, ``malformed``, or what :func:`roundkit.analysis.check_frame` raises.
    """
    files = [path] if path.is_file() else sorted(path.glob("*.parquet"))
    parts = [] if path.is_file() else [path / table for table in TABLES if (path / table).is_dir()]
    return {file.stem: _scan(file) for file in (*files, *parts)}


@contextmanager
def explain_unwritten(file: Path, *, shown: Path) -> Iterator[None]:
    """Say plainly why polars could not write a file; of a full disk it says ``Invalid thrift``, or panics.

    Args:
        file: The file.
        shown: What to call it.

    Raises:
        OSError: the folder takes no file any more, as when its disk is full.
        RoundkitError: anything else.
    """
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        if (why := takes_no_file(file.parent)) is not None:
            raise OSError(why.errno, why.strerror, str(shown)) from error
        raise RoundkitError(f"{shown} cannot be written: {error}") from error


@contextmanager
def explain_unread(table: str, *, place: str) -> Iterator[None]:
    """Say plainly that the rows of an export are damaged; polars finds out when it reads them.

    Args:
        table: The rows' table.
        place: What to call where they lie.

    Raises:
        Refused: ``malformed``.
    """
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        said = f"the rows of {table} cannot be read: {error}"
        raise refuse("malformed", said, place=place, remedy="export them anew") from error


def scan_parts(folder: Path) -> pl.LazyFrame:
    """Return a table that lies in parts, without reading its rows.

    Args:
        folder: The table's own folder.
    """
    return pl.scan_parquet(
        folder / "**/*.parquet", hive_partitioning=True, hive_schema={"campaign": pl.String}
    )


def known(table: str) -> str:
    """Return a table's name.

    Raises:
        Refused: ``unknown-table``.
    """
    return known_in(TABLES, table)


def _scan(file: Path) -> pl.LazyFrame:
    try:
        if file.is_dir():
            return check_any(file.stem, scan_parts(file))
        # A path is a path: brackets in it are no pattern, and "a=b" is no column.
        return check_any(file.stem, pl.scan_parquet(file, glob=False, hive_partitioning=False))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise refuse(
            "malformed", f"{file.name} is no Parquet file: {error}", place=str(file), remedy="export it anew"
        ) from error


def _is_free(folder: Path) -> bool:
    """Say whether a folder can be put there: nothing is, or an empty one that nobody works in."""
    if not os.path.lexists(folder):
        return True
    in_use = Path.cwd().is_relative_to(folder.resolve())
    return folder.is_dir() and not folder.is_symlink() and not in_use and not any(folder.iterdir())


def _collected(table: str, frame: pl.LazyFrame) -> pl.DataFrame:
    with explain_unread(table, place=table):
        return check_any(table, frame).collect()


def _write(frame: pl.DataFrame, file: Path, form: Format) -> None:
    match form:
        case "parquet":
            frame.write_parquet(file)
        case "csv":
            frame.select(_for_csv(frame.schema)).write_csv(file, datetime_format="%Y-%m-%dT%H:%M:%S%.6fZ")
        case "json":
            frame.write_json(file)


def _for_csv(schema: pl.Schema) -> Iterable[pl.Expr]:
    for name, dtype in schema.items():
        column = pl.col(name)
        if isinstance(dtype, pl.List):
            yield pl.format("[{}]", column.cast(pl.List(pl.String)).list.join(",")).alias(name)
        elif dtype == pl.String:
            runs = pl.any_horizontal(column.str.starts_with(start) for start in _FORMULA_STARTS)
            yield pl.when(runs).then(pl.format("'{}", column)).otherwise(column).alias(name)
        else:
            yield column
