"""The frame that every importer gives, and reading a foreign file key by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from roundkit.analysis.columns import Column
from roundkit.analysis.frame_checks import check_columns
from roundkit.analysis.importers import values as foreign
from roundkit.core.canonical import parse_json
from roundkit.core.errors import refuse
from roundkit.core.inputs import read_input

Kind = TypeVar("Kind")

SAMPLES: tuple[Column, ...] = (
    Column("source", pl.String(), "", "name of the file, without the path that leads to it"),
    Column("tool", pl.String(), "", "what wrote it: pyperf or hyperfine"),
    Column("benchmark", pl.String(), "", "name of the benchmark, or the command; untrusted text"),
    Column("unit", pl.String(), "", "unit of the values: second, byte or integer"),
    Column("run", pl.Int64(), "", "process that gave the value, from 0 within its benchmark"),
    Column("position", pl.Int64(), "", "place among the values of the run, warm-ups first, from 0"),
    Column("warmup", pl.Boolean(), "", "whether the tool discards it"),
    Column("value", pl.Float64(), "unit", "the value of one loop"),
    Column("exit_code", pl.Int64(), "", "exit code of the command; null where the tool does not say"),
)
"""Columns of an imported frame: one row a value."""

_WORDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    float: "a number",
    int: "a whole number",
}


_EXACTLY: dict[type, Callable[[object], Any]] = {float: foreign.real, int: foreign.whole}


def read_document(path: Path, tool: str, *, constants: bool = False) -> dict[str, Any]:
    """Read a file that holds one JSON object.

    Args:
        path: The file.
        tool: What is said to have written it.
        constants: Whether the tool's JSON may hold ``NaN`` and infinities.

    Raises:
        Refused: ``missing-file``, ``malformed`` or ``import-value``.
    """
    data = read_input(path)
    return _as(dict, parse_json(data, place=str(path), constants=constants), str(path), tool)


def take(row: Mapping[str, Any], key: str, kind: type[Kind], place: str, tool: str) -> Kind:
    """Return a key's value.

    Args:
        row: The object that holds it.
        key: The key.
        kind: Type of the value; ``float`` takes whole numbers too, and is finite.
        place: The file, and where in it the object stands.
        tool: What is said to have written the file.

    Raises:
        Refused: ``import-key`` where the key is missing, ``import-value`` where it holds something else.
    """
    if key not in row:
        raise refuse("import-key", f"the key {key!r} is missing", place=place, remedy=_remedy(tool))
    return _as(kind, row[key], f"{place}.{key}", tool)


def numbers(values: Iterable[object], place: str, tool: str) -> list[float]:
    """Return values that are all numbers.

    Raises:
        Refused: ``import-value``, with the position of the one that is none.
    """
    return [_as(float, value, f"{place}[{number}]", tool) for number, value in enumerate(values)]


def samples_frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return rows as the declared frame."""
    wanted = {column.name: column.dtype for column in SAMPLES}
    return check_columns("samples", wanted, pl.DataFrame(rows, schema=wanted, orient="row")).collect()


def _as(kind: type[Kind], value: object, place: str, tool: str) -> Kind:
    if kind in _EXACTLY:
        try:
            exact: Kind = _EXACTLY[kind](value)
        except ValueError as error:
            message = f"here belongs {_WORDS[kind]}: {error}"
            raise refuse("import-value", message, place=place, remedy=_remedy(tool)) from error
        return exact
    if not isinstance(value, kind):
        raise refuse("import-value", f"here belongs {_WORDS[kind]}", place=place, remedy=_remedy(tool))
    fitting: Any = foreign.text(value) if isinstance(value, str) else value
    return fitting  # type: ignore[no-any-return]


def _remedy(tool: str) -> str:
    return f"give a file that {tool} wrote"
