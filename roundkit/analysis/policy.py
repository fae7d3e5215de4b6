"""A policy pilot as data frames: one row a run, and the share of runs that have not reached the target."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from roundkit.analysis.frame_checks import check_columns, known_in
from roundkit.analysis.policy_columns import POLICY_EXPORTED, POLICY_TABLES
from roundkit.audit.policy_material import PolicyMaterial, RunMaterial, read_policy
from roundkit.evidence.plan_seal import plan_changed, seal_problem
from roundkit.models.policy_plan import ARMS, PolicyPlan, PolicySlot
from roundkit.models.policy_run import PolicyRunRecord
from roundkit.rules.policy_result import state_of
from roundkit.rules.policy_workload import mean_wait_s
from roundkit.stats.survival import product_limit

Row = dict[str, Any]
_MICRO = 1_000_000
_RUNS = {column.name: column.dtype for column in POLICY_TABLES["policy_runs"]}
_CURVE = {column.name: column.dtype for column in POLICY_TABLES["policy_curve"]}


@dataclass(frozen=True)
class PolicyFrames:
    """The frames of one policy pilot that an export holds.

    Attributes:
        material: Its folder, read.
    """

    material: PolicyMaterial

    def table(self, name: str) -> pl.LazyFrame:
        """Return a frame by its name.

        Raises:
            Refused: ``unknown-table``.
        """
        return check_columns(known_in(POLICY_EXPORTED, name), _RUNS, runs_frame(self.material))


def policy_frames(path: str | Path) -> PolicyFrames:
    """Return the frames of a policy pilot, of one that is not finished too.

    Raises:
        EvidenceProblem: there is no plan that can be read, or a file that is damaged; ``plan-changed``.
    """
    material = read_policy(Path(path))
    if (said := seal_problem(material.plan_bytes, material.seal)) is not None:
        raise plan_changed(said)
    if material.problems:
        raise material.problems[0]
    return PolicyFrames(material)


def runs_frame(material: PolicyMaterial) -> pl.DataFrame:
    """Return one row a slot of the frozen order, in that order; what never ran is in it as ``missing``."""
    runs = {run.slot.run_id: run for run in material.runs}
    rows = [_run(material.plan, slot, runs.get(slot.run_id)) for slot in material.plan.schedule]
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


def _run(plan: PolicyPlan, slot: PolicySlot, run: RunMaterial | None) -> Row:
    """Return a slot's row; what is not known of it is null."""
    known = {
        "campaign": plan.campaign_id,
        "pilot": plan.pilot_id,
        "run": slot.run_id,
        "arm": slot.arm,
        "repetition": slot.repetition,
        "order": slot.order,
        "state": "missing" if run is None else "unfinished",
    }
    if run is not None:
        known |= {
            "started_utc": run.start.started_utc if run.start is not None else None,
            "launched_utc": run.launch.launched_utc if run.launch is not None else None,
            "ended_utc": run.end.noted_utc if run.end is not None else None,
        }
        known |= _recorded(run.record) if run.record is not None else {}
    return {name: known.get(name) for name in _RUNS}


def _recorded(record: PolicyRunRecord) -> Row:
    own = ("process", "end", "target_s", "wall_s", "final_gain", "device_hours", "utilization", "tokens")
    return {
        **{name: getattr(record, name) for name in own},
        "state": state_of(record),
        "detail": record.detail or None,
        "time_s": record.target_s if record.target_s is not None else record.wall_s,
        "rounds": len(record.rounds),
        "experiments": sum(record.experiments.values()),
        "mean_wait_s": mean_wait_s([wait.wait_s for wait in record.waits]),
        "usd": record.micro_usd / _MICRO if record.micro_usd is not None else None,
        **{f"charged_{name}": value for name, value in record.charged.model_dump().items()},
        "lost": len(record.lost),
        "rejected": sum(record.rejected.values()),
        "provenance": ", ".join(record.provenances) or None,
    }


def _row(arm: str, time: float, share: float, event: str, left: int) -> dict[str, object]:
    percent = round(100 * share, 3)
    return dict(zip(_CURVE, (arm, round(time, 3), percent, event, left), strict=True))
