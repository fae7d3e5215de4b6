"""Rounds that are found twice: each counts once in every frame, and two of one name are told apart."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from roundkit.analysis.exported import explain_unread
from roundkit.analysis.frame_checks import check_frame
from roundkit.core.errors import refuse

Key = tuple[str, str]
"""Campaign and round."""
_KEY = ("campaign", "round")
_IMPORTED = {"trials": pl.col("purpose") == "imported", "tickets": pl.col("provenance").is_null()}
"""Rows that another tool's ledger gave: whoever named them after a round wants them beside its own."""


@dataclass
class Known:
    """Rounds that were found so far.

    Attributes:
        digests: Digest of each one's plan; null for what was imported.
        tables: The frames that each has its rows in.
    """

    digests: dict[Key, str | None] = field(default_factory=dict)
    tables: dict[Key, frozenset[str]] = field(default_factory=dict)

    def note(self, key: Key, digest: str | None, tables: frozenset[str]) -> bool:
        """Note a round, and say whether it was known before.

        Raises:
            Refused: ``rounds-collide``: the one known by its name is another.
        """
        repeated = key in self.digests
        if repeated and (digest is None or self.digests[key] != digest):
            raise refuse(
                "rounds-collide",
                f"there are two different rounds {key[1]!r} of campaign {key[0]!r}",
                remedy="load them one by one: frames are joined by campaign and round",
            )
        self.digests[key] = digest
        self.tables[key] = self.tables.get(key, frozenset()) | tables
        return repeated


def without_repeats(frames: dict[str, pl.LazyFrame], known: Known, *, name: str) -> dict[str, pl.LazyFrame]:
    """Return exported frames without what is known of their rounds already; note rounds that are new.

    An export without the frame ``rounds`` says of no row whose it is but by name: what a round of that name
    has already is taken for the same.

    Args:
        frames: The frames of one export.
        known: Rounds that were found before it.
        name: What to call the export in an error.

    Raises:
        Refused: ``rounds-collide``, or ``malformed``: the rows of ``rounds`` cannot be read.
    """
    before = known.tables
    if "rounds" in frames:
        rows = _rounds(frames["rounds"], name)
        # Of an export that is refused, nothing stays noted.
        noted = Known(dict(known.digests), dict(known.tables))
        for key, digest in rows:
            noted.note(key, digest, frozenset(frames))
        before = {key: known.tables[key] for key, _ in rows if key in known.tables}
        known.digests, known.tables = noted.digests, noted.tables
    return {
        table: _without(table, frame, [key for key, tables in before.items() if table in tables])
        for table, frame in frames.items()
    }


def _rounds(frame: pl.LazyFrame, name: str) -> list[tuple[Key, str | None]]:
    with explain_unread("rounds", place=name):
        found = frame.select(*_KEY, "round_digest").collect()
    return [((campaign, round_), digest) for campaign, round_, digest in found.iter_rows()]


def _without(table: str, frame: pl.LazyFrame, repeated: list[Key]) -> pl.LazyFrame:
    if not repeated:
        return frame
    keys = pl.DataFrame(repeated, schema=dict.fromkeys(_KEY, pl.String), orient="row").lazy()
    fresh = frame.join(keys, on=_KEY, how="anti")
    if table in _IMPORTED:
        fresh = pl.concat([fresh, frame.join(keys, on=_KEY, how="semi").filter(_IMPORTED[table])])
    return check_frame(table, fresh)
