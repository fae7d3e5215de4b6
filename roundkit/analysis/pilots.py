"""A paired pilot as lazy frames, each built when it is first asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from roundkit.analysis.frame_checks import check_columns, known_in
from roundkit.analysis.pilot_columns import PILOT_TABLES
from roundkit.audit.pilot_source import PilotSource, open_pilot
from roundkit.models.pilot_cohort import Observation

Row = dict[str, Any]


@dataclass(frozen=True)
class PilotFrames:
    """The frames of one pilot."""

    source: PilotSource

    @cached_property
    def tuples(self) -> pl.LazyFrame:
        """One row an expected tuple."""
        return self._frame("pilot_tuples", map(self._tuple, self.source.cohort.observations))

    @cached_property
    def checks(self) -> pl.LazyFrame:
        """One row a check of a tuple's candidate."""
        rows = (
            {**self._key(row), "check": each.check, "outcome": each.outcome, "reason": each.reason}
            for row in self.source.cohort.observations
            for each in row.checks
        )
        return self._frame("pilot_checks", rows)

    @cached_property
    def calls(self) -> pl.LazyFrame:
        """One row a call."""
        names = {"sequence", "tool", "path", "code", "exit_code", "wall_ms"}
        rows = (
            {**self._key(row), **call.model_dump(include=names)}
            for row in self.source.cohort.observations
            for call in row.gateway
        )
        return self._frame("pilot_calls", rows)

    @cached_property
    def eligibility(self) -> pl.LazyFrame:
        """One row an eligibility item of a tuple."""
        rows = (
            {
                **self._key(row),
                "item": each.item,
                "measured": each.reason is None,
                "reason_code": each.reason.partition(":")[0] if each.reason else None,
                "reason": each.reason.partition(": ")[2] if each.reason else None,
            }
            for row in self.source.cohort.observations
            for each in row.eligibility.items
        )
        return self._frame("pilot_eligibility", rows)

    @cached_property
    def reviews(self) -> pl.LazyFrame:
        """One row a review."""
        names = {"method", "reviewer", "blinded", "judgement", "active_ms", "finished_utc"}
        rows = (
            {**self._key(row), **row.review.model_dump(include=names), "missing": row.review.unclear}
            for row in self.source.cohort.observations
            if row.review is not None
        )
        return self._frame("pilot_reviews", rows)

    @cached_property
    def findings(self) -> pl.LazyFrame:
        """One row a finding."""
        names = {
            "rank",
            "failure_class",
            "cause",
            "artifact",
            "sha256",
            "sentence",
            "reproduction",
            "maps_to",
        }
        rows = (
            {
                **self._pilot,
                **each.model_dump(include=names),
                "tuples": len(each.tuples),
                "tuple": each.tuple_id,
            }
            for each in self.source.findings
        )
        return self._frame("pilot_findings", rows)

    def table(self, name: str) -> pl.LazyFrame:
        """Return a frame by its name.

        Raises:
            Refused: ``unknown-table``.
        """
        frame: pl.LazyFrame = getattr(self, known_in(PILOT_TABLES, name).removeprefix("pilot_"))
        return frame

    @property
    def _pilot(self) -> Row:
        return {"campaign": self.source.cohort.campaign_id, "pilot": self.source.cohort.pilot_id}

    def _key(self, row: Observation) -> Row:
        slot = row.slot
        return {
            **self._pilot,
            "tuple": slot.tuple_id,
            "task": slot.task,
            "variant": slot.variant,
            "repetition": slot.repetition,
        }

    def _tuple(self, row: Observation) -> Row:
        outcomes = Counter(each.outcome for each in row.checks)
        reasons = [f"{item.item}: {item.reason}" for item in row.eligibility.items if item.reason]
        words = ("process", "process_word", "detail", "acceptance")
        figures = ("calls", "failed_calls", "wall_ms", "validation_ms", "micro_usd")
        decided = row.eligibility
        return {
            **self._key(row),
            "order": row.slot.order,
            "state": row.state,
            **{name: getattr(row, name) or None for name in words},
            **{name: getattr(row, name) for name in figures},
            **{f"checks_{name}": outcomes[name] for name in ("passed", "failed", "unavailable")},
            **{f"tokens_{name}": value for name, value in vars(row.tokens).items()},
            "presented_bytes": decided.presented_bytes,
            "active_ms": decided.active_ms,
            "recovery": decided.recovery,
            "interventions": decided.interventions,
            "eligible": decided.eligible,
            "missing": "; ".join(reasons) or None,
            "provenance": self.source.cohort.provenance,
            "published": self.source.cohort.published is not None,
        }

    @staticmethod
    def _frame(table: str, rows: Iterable[Row]) -> pl.LazyFrame:
        wanted = {column.name: column.dtype for column in PILOT_TABLES[table]}
        frame = pl.DataFrame(list(rows), schema=wanted, orient="row")
        return check_columns(table, wanted, frame)


def pilot_frames(source: str | Path | PilotSource) -> PilotFrames:
    """Return the frames of a pilot.

    Args:
        source: A pilot's folder, or one that is open already.

    Raises:
        EvidenceProblem: there is no plan, and no published cohort, that can be read.
    """
    return PilotFrames(source if isinstance(source, PilotSource) else open_pilot(Path(source)))
