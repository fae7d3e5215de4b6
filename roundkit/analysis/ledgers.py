"""Evidence folders as lazy frames: each frame is built when it is first asked for."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from roundkit.analysis.columns import TABLES, check_frame, schema_of
from roundkit.analysis.rows import ROWS
from roundkit.core.errors import refuse
from roundkit.evidence import RoundEvidence, find_evidence, open_evidence

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Ledgers:
    """The frames of one or more rounds.

    Attributes:
        sources: The evidence behind them, in order of opening.
    """

    sources: tuple[RoundEvidence, ...]

    @cached_property
    def rounds(self) -> pl.LazyFrame:
        """One row a round."""
        return self._frame("rounds")

    @cached_property
    def lanes(self) -> pl.LazyFrame:
        """One row a lane."""
        return self._frame("lanes")

    @cached_property
    def attempts(self) -> pl.LazyFrame:
        """One row an attempt of a lane's agent."""
        return self._frame("attempts")

    @cached_property
    def tickets(self) -> pl.LazyFrame:
        """One row a ticket, rejected ones included."""
        return self._frame("tickets")

    @cached_property
    def trials(self) -> pl.LazyFrame:
        """One row a trial, with its raw samples."""
        return self._frame("trials")

    @cached_property
    def compositions(self) -> pl.LazyFrame:
        """One row a composition step or rerun."""
        return self._frame("compositions")

    @cached_property
    def devices(self) -> pl.LazyFrame:
        """One row a device and lease."""
        return self._frame("devices")

    @cached_property
    def aa_checks(self) -> pl.LazyFrame:
        """One row an A/A check."""
        return self._frame("aa_checks")

    @cached_property
    def events(self) -> pl.LazyFrame:
        """One row an event."""
        return self._frame("events")

    def to_pandas(self, table: str) -> pd.DataFrame:
        """Return one frame as a pandas data frame.

        Raises:
            Refused: ``unknown-table``.
        """
        if table not in TABLES:
            raise refuse(
                "unknown-table", f"there is no frame {table!r}", remedy=f"one of {', '.join(TABLES)}"
            )
        frame: pl.LazyFrame = getattr(self, table)
        return frame.collect().to_pandas()

    def _frame(self, table: str) -> pl.LazyFrame:
        rows = [row for evidence in self.sources for row in ROWS[table](evidence)]
        return check_frame(table, pl.DataFrame(rows, schema=schema_of(table), orient="row"))


def load(places: str | Path | Sequence[str | Path]) -> Ledgers:
    """Open every evidence folder at, below or matching a place.

    Args:
        places: A folder, a glob, or several of them.

    Returns:
        Lazy frames over all of them, oldest round first.

    Raises:
        Refused: ``no-evidence`` when nothing is found; whatever is wrong with an evidence folder.
    """
    wanted = [places] if isinstance(places, (str, Path)) else list(places)
    folders = sorted({found for place in wanted for found in _folders(place)})
    if not folders:
        raise refuse(
            "no-evidence",
            f"no evidence at {', '.join(str(place) for place in wanted)}",
            remedy="name a folder that holds an index.json, at any depth",
        )
    opened = [open_evidence(folder) for folder in folders]
    return Ledgers(tuple(sorted(opened, key=lambda item: (item.index.exported_utc, item.index.subject_id))))


def _folders(place: str | Path) -> list[Path]:
    path = Path(place)
    if path.is_dir():
        return find_evidence(path)
    return [found for match in glob.glob(str(place), recursive=True) for found in find_evidence(Path(match))]  # noqa: PTH207
