"""From the records of all runs to the decision record."""

from __future__ import annotations

from collections.abc import Sequence

from roundkit.models.policy_plan import Arm, PolicyPlan
from roundkit.models.policy_run import PolicyDecision, PolicyRunRecord
from roundkit.rules.policy_decision import RunResult, decide_policy, equal_arms_say_faster, time_of


def decision_of(plan: PolicyPlan, records: Sequence[PolicyRunRecord]) -> PolicyDecision:
    """Decide a pilot whose every slot has a record.

    Raises:
        ValueError: the records are not those of the schedule, one each.
    """
    if sorted(record.run_id for record in records) != sorted(slot.run_id for slot in plan.schedule):
        raise ValueError("there is not one record for each run of the schedule")
    verdict = decide_policy(results(records, "P"), results(records, "S"), plan.ratio_threshold)
    return PolicyDecision(
        format="roundkit-policy-decision/1",
        plan_sha256=plan.digest(),
        decision=verdict.decision,
        reasons=verdict.reasons,
        pairs=verdict.pairs,
        median_ratio=_finite(verdict.median_ratio),
        p_final_gain=verdict.p_final_gain,
        s_final_gain=verdict.s_final_gain,
        ratio_threshold=plan.ratio_threshold,
        equal_arms_faster=equal_arms_say_faster(plan.repetitions),
        records={record.run_id: record.digest() for record in records},
    )


def results(records: Sequence[PolicyRunRecord], arm: Arm) -> list[RunResult]:
    """Return what the decision knows of an arm's runs, by repetition."""
    own = sorted((record for record in records if record.arm == arm), key=lambda record: record.repetition)
    return [
        RunResult(time_of(record.target_s, censored=record.censored), record.final_gain) for record in own
    ]


def state_of(record: PolicyRunRecord) -> str:
    """Return what became of a run: ``reached``, ``censored``, ``untimed``, ``error`` or ``aborted``."""
    if record.process != "completed":
        return record.process
    if record.censored:
        return "censored"
    return "untimed" if record.target_s is None else "reached"


def _finite(value: float | None) -> float | None:
    return None if value is None or value == float("inf") else value
