"""Every frame that there is, with its columns: what ``roundkit schema``, the reference and exports know."""

from __future__ import annotations

import polars as pl

from roundkit.analysis.columns import ROWS_OF, TABLES, Column
from roundkit.analysis.frame_checks import check_columns, known_in
from roundkit.analysis.importers.samples import SAMPLES
from roundkit.analysis.pilot_columns import PILOT_ROWS_OF, PILOT_TABLES
from roundkit.analysis.policy_columns import POLICY_EXPORTED, POLICY_ROWS_OF, POLICY_TABLES
from roundkit.analysis.wave_columns import WAVE_ROWS_OF, WAVE_TABLES

EXPORTED: dict[str, tuple[Column, ...]] = {
    **TABLES,
    **PILOT_TABLES,
    **POLICY_EXPORTED,
    **WAVE_TABLES,
}
"""The columns of each frame that an export holds: of rounds, pilots of both kinds and wave campaigns."""

FRAMES: dict[str, tuple[Column, ...]] = {**EXPORTED, **POLICY_TABLES, "samples": SAMPLES}
"""The columns of each frame, in order."""

FRAME_ROWS: dict[str, str] = {
    **ROWS_OF,
    **PILOT_ROWS_OF,
    **WAVE_ROWS_OF,
    **POLICY_ROWS_OF,
    "samples": "one row a value of a file that pyperf or hyperfine wrote",
}
"""What a row of each frame is."""


def any_table(table: str) -> str:
    """Return the name of a table that an export holds.

    Raises:
        Refused: ``unknown-table``.
    """
    return known_in(EXPORTED, table)


def check_any(table: str, frame: pl.LazyFrame | pl.DataFrame) -> pl.LazyFrame:
    """Return a frame with exactly the declared columns of its table, in the declared order.

    Raises:
        Refused: as :func:`roundkit.analysis.check_frame`.
    """
    wanted = {column.name: column.dtype for column in EXPORTED[any_table(table)]}
    return check_columns(table, wanted, frame)
