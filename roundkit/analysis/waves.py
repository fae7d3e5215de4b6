"""A wave campaign as lazy frames: waves, minutes, rejects and shards, read beside both halves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl
from pydantic import ValidationError

from roundkit.analysis.frame_checks import check_columns, known_in
from roundkit.analysis.wave_columns import WAVE_TABLES
from roundkit.evidence import wave_layout as names
from roundkit.models.base import Record
from roundkit.models.wave_records import Rejected
from roundkit.models.wave_traffic import RequestEvent
from roundkit.waves.folder import CampaignFolder, open_campaign

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
R = TypeVar("R", bound=Record)
_MINUTE_S = 60
_KINDS = {
    "owner": "no one owner",
    "score": "another attempt was better",
    "parked": "gated apart",
}
_BANKED_BEFORE = "banked already"
_NO_ANSWER = "no answer of the gate"
_DIGITS = re.compile(r"\d+")
_LONGEST = 60


@dataclass(frozen=True)
class WaveFrames:
    """The frames of one wave campaign; each is built when it is first asked for.

    Attributes:
        folder: The campaign's folder, or an export of it.
    """

    folder: CampaignFolder

    @cached_property
    def waves(self) -> pl.LazyFrame:
        """One row a finished wave, or a later gate of one."""
        return self._frame("waves", self._waves())

    @cached_property
    def wave_minutes(self) -> pl.LazyFrame:
        """One row a minute of a wave and model."""
        return self._frame("wave_minutes", self._minutes())

    @cached_property
    def wave_rejects(self) -> pl.LazyFrame:
        """One row a draft that did not bank."""
        return self._frame("wave_rejects", self._rejects())

    @cached_property
    def wave_shards(self) -> pl.LazyFrame:
        """One row a draft agent's slice of a wave."""
        return self._frame("wave_shards", self._shards())

    def table(self, name: str) -> pl.LazyFrame:
        """Return a frame by its name.

        Raises:
            Refused: ``unknown-table``.
        """
        frame: pl.LazyFrame = getattr(self, known_in(WAVE_TABLES, name))
        return frame

    def to_pandas(self, table: str) -> pd.DataFrame:
        """Return one frame as a pandas data frame.

        Raises:
            Refused: ``unknown-table``.
        """
        return self.table(table).collect().to_pandas()

    @property
    def _campaign(self) -> str:
        return self.folder.plan.plan.campaign_id

    def _frame(self, table: str, rows: Iterator[Row]) -> pl.LazyFrame:
        schema = {column.name: column.dtype for column in WAVE_TABLES[table]}
        named = [{"campaign": self._campaign, **row} for row in rows]
        return check_columns(table, schema, pl.DataFrame(named, schema=schema, orient="row"))

    def _waves(self) -> Iterator[Row]:
        own = {column.name for column in WAVE_TABLES["waves"]}
        for row in self.folder.ledger():
            traffic, decision = row.traffic, row.decision
            counted = {} if traffic is None else traffic.model_dump()
            values = {**row.model_dump(exclude={"traffic", "decision"}), **counted}
            yield {
                **{name: value for name, value in values.items() if name in own},
                "agreed": row.prefilter.get("agree", 0),
                "decision": None if decision is None else decision.reason,
                "next_workers": None if decision is None else decision.next_workers,
                "missing": _why_no_rate(traffic is None, counted.get("per_minute")),
            }

    def _minutes(self) -> Iterator[Row]:
        found: dict[tuple[str, int, str], list[RequestEvent]] = {}
        for event in self._lines(names.EVENTS, RequestEvent):
            key = (event.tag, int(event.at_s // _MINUTE_S), event.model or "")
            found.setdefault(key, []).append(event)
        for (tag, minute, model), events in sorted(found.items()):
            tokens = [event.tokens for event in events if event.tokens is not None]
            yield {
                "tag": tag,
                "minute_utc": datetime.fromtimestamp(minute * _MINUTE_S, UTC),
                "model": model or None,
                "posts": sum(event.event == "post" for event in events),
                "answers": sum(event.event == "answer" for event in events),
                "platform_429": sum(event.source == "platform" for event in events),
                "provider_429": sum(event.event == "429" and event.source != "platform" for event in events),
                "tokens": sum(tokens) if tokens else None,
                "truncated": sum(event.truncated for event in events),
            }

    def _rejects(self) -> Iterator[Row]:
        for row in self._lines(names.REJECTS, Rejected):
            yield {**row.model_dump(exclude={"detail"}), "kind": _kind(row)}

    def _shards(self) -> Iterator[Row]:
        for tag in self.folder.tags():
            for shard, end in self.folder.shards(tag):
                yield {
                    **shard.model_dump(include={"tag", "pool", "model", "attempt", "started_utc"}),
                    "shard": shard.index,
                    "targets": len(shard.targets),
                    "ended_utc": None if end is None else end.ended_utc,
                    "end_reason": None if end is None else end.end_reason,
                    "turns": None if end is None else end.turns,
                    "truncated_turns": None if end is None else end.truncated_turns,
                    "tokens": None if end is None else end.tokens,
                    "micro_usd": None if end is None else end.micro_usd,
                }

    def _lines(self, name: str, model: type[R]) -> Iterator[R]:
        """Yield the records of a file of lines; one that is being written now is none yet."""
        try:
            lines = self.folder.at(name).read_bytes().splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            try:
                yield model.model_validate_json(line)
            except ValidationError:
                continue


def load_waves(folder: str | Path) -> WaveFrames:
    """Return the frames of a wave campaign, whether its halves run or not.

    Args:
        folder: The campaign's folder, or an export of it.

    Raises:
        Refused: ``no-campaign``.
    """
    return WaveFrames(open_campaign(Path(folder)))


def _kind(row: Rejected) -> str:
    if row.stage == "prefilter":
        return row.reason.partition(":")[0]
    if row.group is not None and row.reason.endswith(_BANKED_BEFORE):
        return _BANKED_BEFORE
    if row.stage == "gate" and row.reason.startswith("no answer"):
        return _NO_ANSWER
    # Reasons that differ in figures, or in what a compiler said after them, are of one kind.
    said = row.reason.partition(":")[0]
    return _KINDS.get(row.stage) or _DIGITS.sub("N", said)[:_LONGEST]


def _why_no_rate(untold: bool, per_minute: float | None) -> str | None:
    if untold:
        return "no request was told"
    return None if per_minute is not None else "less than a minute"
