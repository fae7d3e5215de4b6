"""Frames are checked once, where they come in: exactly the declared columns, of the declared types."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from roundkit.analysis.columns import schema_of
from roundkit.core.errors import Refusal, Refused, refuse


def check_frame(table: str, frame: pl.LazyFrame | pl.DataFrame) -> pl.LazyFrame:
    """Return a frame with exactly the declared columns, in the declared order.

    Raises:
        Refused: ``missing-columns``, ``unknown-columns`` or ``wrong-dtype``, all in one answer.
    """
    return check_columns(table, schema_of(table), frame)


def check_columns(
    table: str, wanted: Mapping[str, pl.DataType], frame: pl.LazyFrame | pl.DataFrame
) -> pl.LazyFrame:
    """Return a frame with exactly the wanted columns, in the wanted order.

    Args:
        table: What to call the frame in an error.
        wanted: Column names and types.
        frame: The frame.

    Raises:
        Refused: ``missing-columns``, ``unknown-columns`` or ``wrong-dtype``, all in one answer.
    """
    lazy = frame.lazy()
    found = lazy.collect_schema()
    refusals = []
    if missing := [name for name in wanted if name not in found]:
        refusals.append(
            Refusal(
                "missing-columns",
                f"the frame {table} lacks {', '.join(missing)}",
                table,
                "add them, null where nothing is known",
            )
        )
    if unknown := [name for name in found if name not in wanted]:
        refusals.append(
            Refusal("unknown-columns", f"the frame {table} has no {', '.join(unknown)}", table, "drop them")
        )
    for name, dtype in wanted.items():
        if name in found and found[name] != dtype:
            refusals.append(
                Refusal("wrong-dtype", f"{name} is {found[name]}, not {dtype}", f"{table}.{name}", "cast it")
            )
    if refusals:
        raise Refused(refusals)
    return lazy.select(list(wanted))


def known_in(tables: Mapping[str, object], table: str) -> str:
    """Return a table's name.

    Raises:
        Refused: ``unknown-table``, with those that there are.
    """
    if table not in tables:
        raise refuse("unknown-table", f"there is no frame {table!r}", remedy=f"one of {', '.join(tables)}")
    return table
