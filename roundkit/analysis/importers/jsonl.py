"""JSON Lines as one of the declared frames, by a map from its columns to the keys of the lines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from roundkit.analysis.columns import TABLES, schema_of
from roundkit.analysis.exported import known
from roundkit.analysis.frame_checks import check_frame
from roundkit.analysis.importers import values as foreign
from roundkit.core.canonical import parse_json
from roundkit.core.errors import Refusal, Refused, refuse
from roundkit.core.inputs import read_input


def read_jsonl(
    path: Path,
    columns: Mapping[str, str],
    *,
    table: str = "tickets",
    campaign: str | None = None,
    name: str | None = None,
) -> pl.LazyFrame:
    """Return the rows of a JSON Lines file as a declared frame.

    Args:
        path: A file with one JSON object a line.
        columns: From columns of the frame to keys of the lines; ``a.b`` goes into an object. A key that a
            line lacks, and a column that is not mapped, are null. Values are taken as they are: a number
            for a figure, text for text, RFC 3339 for a time, a list of numbers for samples.
        table: Which frame.
        campaign: The campaign of every row; ``jsonl`` when neither given nor mapped.
        name: The round of every row; the file's name when neither given nor mapped.

    Raises:
        Refused: ``unknown-table``, ``unknown-columns``, ``missing-file``, ``malformed``, or ``import-value``
            with the file, the line and the key.
    """
    schema = schema_of(known(table))
    if unknown := [column for column in columns if column not in schema]:
        raise refuse(
            "unknown-columns",
            f"the frame {table} has no {', '.join(unknown)}",
            place="columns",
            remedy=f"one of {', '.join(column.name for column in TABLES[table])}",
        )
    lines = read_input(path).splitlines()
    fixed = {"campaign": campaign or "jsonl", "round": name or path.stem}
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        document = parse_json(line, place=f"{path.name}:{number}")
        rows.append({**fixed, **_row(document, columns, schema, f"{path.name}:{number}")})
    whole = [{column: row.get(column) for column in schema} for row in rows]
    return check_frame(table, pl.DataFrame(whole, schema=schema, orient="row"))


def _row(
    document: object, columns: Mapping[str, str], schema: Mapping[str, pl.DataType], place: str
) -> dict[str, Any]:
    values, refusals = {}, []
    for column, key in columns.items():
        found = _at(document, key)
        try:
            values[column] = None if found is None else _typed(found, schema[column])
        except ValueError as error:
            refusals.append(Refusal("import-value", str(error), f"{place}: {key}", "map another key"))
    if refusals:
        raise Refused(refusals)
    return values


def _at(document: object, key: str) -> object:
    for part in key.split("."):
        if not isinstance(document, dict) or part not in document:
            return None
        document = document[part]
    return document


def _typed(value: object, dtype: pl.DataType) -> object:
    """Return a JSON value as a column's type; nothing is guessed.

    Raises:
        ValueError: it is of another kind.
    """
    match dtype:
        case pl.Float64():
            return foreign.real(value)
        case pl.Int64():
            return foreign.whole(value)
        case pl.String() if isinstance(value, str):
            return foreign.text(value)
        case pl.Boolean() if isinstance(value, bool):
            return value
        case pl.Datetime() if isinstance(value, str):
            return foreign.moment(value)
        case pl.List() if isinstance(value, list):
            return [foreign.real(item) for item in value]
    raise ValueError(f"{value!r} does not fit {dtype}")
