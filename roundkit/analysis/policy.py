"""A policy pilot as data frames: one row a run, and the share of runs that have not reached the target."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from roundkit.models.policy_plan import ARMS
from roundkit.models.policy_run import PolicyRunRecord
from roundkit.rules.policy_result import state_of
from roundkit.rules.policy_workload import mean_wait_s
from roundkit.stats.survival import product_limit

_MICRO = 1_000_000
_RUNS = {
    "run": pl.String,
    "arm": pl.String,
    "repetition": pl.Int64,
    "order": pl.Int64,
    "process": pl.String,
    "state": pl.String,
    "end": pl.String,
    "time_s": pl.Float64,
    "target_s": pl.Float64,
    "wall_s": pl.Float64,
    "final_gain": pl.Float64,
    "rounds": pl.Int64,
    "device_hours": pl.Float64,
    "utilization": pl.Float64,
    "mean_wait_s": pl.Float64,
    "tokens": pl.Int64,
    "usd": pl.Float64,
    "lost": pl.Int64,
    "rejected": pl.Int64,
}
_CURVE = {
    "arm": pl.String,
    "time_s": pl.Float64,
    "without_target_percent": pl.Float64,
    "event": pl.String,
    "runs_left": pl.Int64,
}


def runs_frame(records: Sequence[PolicyRunRecord]) -> pl.DataFrame:
    """Return one row a run; ``time_s`` is its time to the target, or until it was censored, in seconds."""
    rows = [
        {
            "run": record.run_id,
            "arm": record.arm,
            "repetition": record.repetition,
            "order": record.order,
            "process": record.process,
            "state": state_of(record),
            "end": record.end,
            "time_s": record.target_s if record.target_s is not None else record.wall_s,
            "target_s": record.target_s,
            "wall_s": record.wall_s,
            "final_gain": record.final_gain,
            "rounds": len(record.rounds),
            "device_hours": record.device_hours,
            "utilization": record.utilization,
            "mean_wait_s": mean_wait_s([wait.wait_s for wait in record.waits]),
            "tokens": record.tokens,
            "usd": record.micro_usd / _MICRO if record.micro_usd is not None else None,
            "lost": len(record.lost),
            "rejected": sum(record.rejected.values()),
        }
        for record in records
    ]
    return pl.DataFrame(rows, schema=_RUNS)


def curve_frame(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the steps of each arm's product-limit estimate, from all of its runs at time 0 on.

    Args:
        runs: From :func:`runs_frame`; runs that broke are left out.
    """
    rows = []
    for arm in ARMS:
        own = runs.filter((pl.col("arm") == arm) & pl.col("state").is_in(["reached", "censored"]))
        observed = [(row["time_s"], row["state"] == "reached") for row in own.to_dicts()]
        known = [(time, reached) for time, reached in observed if time is not None]
        if not known:
            continue
        rows.append(_row(arm, 0.0, 1.0, "start", len(known)))
        for step in product_limit(known):
            left = step.at_risk - step.events - step.censored
            events = [("reached", step.events), ("censored", step.censored)]
            rows += [
                _row(arm, step.time, step.share, name, left) for name, count in events for _ in range(count)
            ]
    return pl.DataFrame(rows, schema=_CURVE)


def _row(arm: str, time: float, share: float, event: str, left: int) -> dict[str, object]:
    percent = round(100 * share, 3)
    return dict(zip(_CURVE, (arm, round(time, 3), percent, event, left), strict=True))
