"""Ledgers as lazy frames: each frame is built when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from roundkit.analysis.columns import TABLES, schema_of
from roundkit.analysis.exported import Format, known, read_frames, write_frames
from roundkit.analysis.frame_checks import check_frame
from roundkit.analysis.places import Place, find_places
from roundkit.analysis.repeats import Known, without_repeats
from roundkit.analysis.rows import ROWS
from roundkit.core.errors import Refused, RoundkitError
from roundkit.core.progress import SILENT, Progress
from roundkit.evidence import RoundEvidence
from roundkit.rounds.snapshot import OpenRound, RoundSource, open_source

if TYPE_CHECKING:
    import pandas as pd

_LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class _Opened:
    """What was read of all places: rounds, exported frames with what they repeat, and what went wrong."""

    rounds: tuple[RoundSource, ...]
    exports: tuple[dict[str, pl.LazyFrame], ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Ledgers:
    """The frames of one or more rounds.

    Attributes:
        places: Where they lie; each is opened when a frame is first asked for.
        given: Rounds that were opened before.
        added: Frames that came from elsewhere, by table.
        campaign: Only this campaign's rows are in the frames; None for all.
        strict: Whether a ledger that cannot be read is an error; else it stands in ``problems``.
        progress: Shows how many places were opened.
    """

    places: tuple[Place, ...] = ()
    given: tuple[RoundSource, ...] = ()
    added: tuple[tuple[str, pl.LazyFrame], ...] = ()
    campaign: str | None = None
    strict: bool = True
    progress: Progress = field(default=SILENT, compare=False, repr=False)

    @property
    def sources(self) -> tuple[RoundSource, ...]:
        """The rounds behind the frames, in order of export, open ones last."""
        return self._opened.rounds

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be read, and why; empty when ``strict``."""
        return self._opened.problems

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

    def table(self, name: str) -> pl.LazyFrame:
        """Return a frame by its name.

        Raises:
            Refused: ``unknown-table``.
        """
        frame: pl.LazyFrame = getattr(self, known(name))
        return frame

    def to_pandas(self, table: str) -> pd.DataFrame:
        """Return one frame as a pandas data frame.

        Raises:
            Refused: ``unknown-table``.
        """
        return self.table(table).collect().to_pandas()

    def export(
        self, folder: str | Path, form: Format = "parquet", tables: Iterable[str] = TABLES
    ) -> list[Path]:
        """Write frames into a new folder; see :func:`roundkit.analysis.write_frames`."""
        return write_frames({name: self.table(name) for name in tables}, Path(folder), form)

    def only(self, campaign: str) -> Ledgers:
        """Return these ledgers with one campaign's rows alone; an empty name means all."""
        return replace(self, campaign=campaign or None)

    def contents(self) -> pl.DataFrame:
        """Return how many rows each frame has: columns ``table``, ``rows``."""
        rows = [(name, self.table(name).select(pl.len()).collect().item()) for name in TABLES]
        return pl.DataFrame(rows, schema={"table": pl.String, "rows": pl.Int64}, orient="row")

    def problem_table(self) -> pl.DataFrame:
        """Return what could not be read: one column, ``problem``."""
        return pl.DataFrame({"problem": list(self.problems)}, schema={"problem": pl.String})

    def add(self, **frames: pl.LazyFrame | pl.DataFrame) -> Ledgers:
        """Return these ledgers with more rows, by table, as importers give them.

        Raises:
            Refused: ``unknown-table``, or what :func:`roundkit.analysis.check_frame` raises.
        """
        checked = tuple((name, check_frame(known(name), frame)) for name, frame in frames.items())
        return replace(self, added=(*self.added, *checked))

    @cached_property
    def _opened(self) -> _Opened:
        return _open_all(self)

    def _frame(self, table: str) -> pl.LazyFrame:
        rows = [row for source in self.sources for row in ROWS[table](source)]
        own = pl.DataFrame(rows, schema=schema_of(table), orient="row").lazy()
        exported = [frames[table] for frames in self._opened.exports if table in frames]
        added = [frame for name, frame in self.added if name == table]
        whole = pl.concat([own, *exported, *added]) if exported or added else own
        wanted = whole if self.campaign is None else whole.filter(pl.col("campaign") == self.campaign)
        return check_frame(table, wanted)


def load(
    places: str | Path | RoundSource | Sequence[str | Path | RoundSource],
    *,
    strict: bool = True,
    progress: Progress = SILENT,
) -> Ledgers:
    """Find every ledger at, below or matching a place, and give lazy frames over all of them.

    A round directory is read from one consistent copy of its database, beside a running serve and without
    a lock that anybody waits for; once its evidence is exported, from that. The same round found twice
    counts once: evidence goes before a round directory, and both before an export.

    Args:
        places: A round directory, an evidence folder, a Parquet export, a folder above them, a glob, a
            round that is open already, or several of all.
        strict: Whether a ledger that cannot be read is an error; else it is left out and named in
            ``Ledgers.problems``.
        progress: Shows how many places were opened.

    Raises:
        Refused: ``no-ledger`` when nothing is found. Opening, at the first frame, raises what is wrong with a
            ledger, and ``rounds-collide`` for two different rounds of one name.
    """
    wanted = list(places) if isinstance(places, Sequence) and not isinstance(places, str) else [places]
    given = tuple(each for each in wanted if isinstance(each, (RoundEvidence, OpenRound)))
    paths = [each for each in wanted if isinstance(each, (str, Path))]
    found = find_places(paths) if paths or not given else []
    return Ledgers(tuple(found), given, strict=strict, progress=progress)


def _open_all(ledgers: Ledgers) -> _Opened:
    rounds, problems = list(ledgers.given), []
    exports: list[tuple[str, dict[str, pl.LazyFrame]]] = []
    with ledgers.progress.task("opening", len(ledgers.places), "ledgers") as task:
        for place in ledgers.places:
            try:
                if place.kind == "frames":
                    exports.append((place.path.name, read_frames(place.path)))
                else:
                    rounds.append(open_source(place.path))
            except RoundkitError as error:
                if ledgers.strict:
                    raise
                problems.append(f"{place.path.name}: {error}")
            task.advance()
    known = Known()
    kept, collided = _each_once(rounds, known, strict=ledgers.strict)
    problems += collided
    fresh = []
    # Exports that say whose their rows are go before those that do not.
    for name, frames in sorted(exports, key=lambda each: "rounds" not in each[1]):
        try:
            fresh.append(without_repeats(frames, known, name=name))
        except RoundkitError as error:
            if ledgers.strict:
                raise
            problems.append(f"{name}: {error}")
    return _Opened(tuple(kept), tuple(fresh), tuple(problems))


def _each_once(
    rounds: list[RoundSource], known: Known, *, strict: bool
) -> tuple[list[RoundSource], list[str]]:
    """Return every round once, in order, and what collides; note each one."""
    kept, problems = [], []
    for source in sorted(rounds, key=_when):
        campaign, name, digest = _identity(source)
        try:
            if not known.note((campaign, name), digest, frozenset(TABLES)):
                kept.append(source)
        except Refused as error:
            if strict:
                raise
            problems.append(f"{source.path.name}: {error}")
    return kept, problems


def _identity(source: RoundSource) -> tuple[str, str, str]:
    if isinstance(source, OpenRound):
        return source.plan.campaign.campaign_id, source.plan.round_id, source.round_digest
    plan = next(file.sha256 for file in source.index.files if file.path == "round-plan.json")
    return source.index.campaign_id, source.index.subject_id, plan


def _when(source: RoundSource) -> tuple[datetime, str]:
    if isinstance(source, OpenRound):
        return _LAST, source.plan.round_id
    return source.index.exported_utc, source.index.subject_id
