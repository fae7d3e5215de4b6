"""Foreign tickets as frames, filled up to the declared columns, with the round and lanes they belong to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from roundkit.analysis.columns import schema_of
from roundkit.analysis.frame_checks import check_frame
from roundkit.models.campaign import Direction

Frames = dict[str, pl.LazyFrame]

NOT_COMPARED = "not-measured"
"""The verdict of every foreign ticket: its tool tried it once, and nothing was held against noise."""


def gain_of(baseline: float | None, candidate: float | None, direction: Direction) -> float | None:
    """Return the gain as a fraction: ``1 - candidate / baseline`` or its mirror; None without meaning."""
    if baseline is None or candidate is None or baseline <= 0 or candidate <= 0:
        return None
    gain = 1 - candidate / baseline if direction == "lower" else 1 - baseline / candidate
    return gain if math.isfinite(gain) else None


def ticket_frames(
    rows: Sequence[Mapping[str, Any]],
    *,
    campaign: str,
    name: str,
    source: str,
    metric: str | None,
    direction: Direction | None,
) -> Frames:
    """Return the frames ``rounds``, ``lanes`` and ``tickets`` of one foreign run.

    Args:
        rows: Values by column of ``tickets``; what is left out is null.
        campaign: What to call the campaign.
        name: What to call the round.
        source: Name of the file or folder, without the path that leads to it.
        metric: What the values are.
        direction: Which way is better.
    """
    key = {"campaign": campaign, "round": name}
    tickets = _filled("tickets", [{**key, **row} for row in rows])
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["lane"]] = counts.get(row["lane"], 0) + 1
    lanes = [
        {**key, "lane": lane, "tickets": count, "sentence": "imported"} for lane, count in counts.items()
    ]
    about = {
        **key,
        "source": source,
        "state": "imported",
        "lanes": len(lanes),
        "tickets": len(rows),
        "rejected": sum(row.get("state") == "rejected" for row in rows),
        "metric": metric,
        "direction": direction,
        "missing": "imported: no rerun confirmed anything",
    }
    return {"rounds": _filled("rounds", [about]), "lanes": _filled("lanes", lanes), "tickets": tickets}


def _filled(table: str, rows: Sequence[Mapping[str, Any]]) -> pl.LazyFrame:
    schema = schema_of(table)
    whole = [{column: row.get(column) for column in schema} for row in rows]
    return check_frame(table, pl.DataFrame(whole, schema=schema, orient="row"))
