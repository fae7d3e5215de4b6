"""A/A checks: the incumbent against itself, and when their history says that the machine drifts."""

from __future__ import annotations

from collections.abc import Sequence

from roundkit.models.campaign import Drift
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import AaCheck
from roundkit.models.verdict import VerdictRecord
from roundkit.stats.drift import DriftLimits, DriftState, drift_step


def aa_check(
    record: ExperimentRecord,
    verdict: VerdictRecord,
    history: Sequence[AaCheck],
    drift: Drift,
    *,
    resumes: bool,
) -> AaCheck:
    """Judge one A/A check after the ones before it.

    Args:
        record: The experiment.
        verdict: What it says; only its evidence z counts here.
        history: Earlier checks of the round, oldest first.
        drift: The plan's limits.
        resumes: Whether the queue is paused and this check is to end that; the statistic starts anew.
    """
    if record.outcome != "complete" or verdict.z is None:
        reason = record.reason or "no-evidence"
        return AaCheck(
            experiment=record.experiment_id, z=None, cusum=None, passed=False, reason=reason, resumes=resumes
        )
    limits = DriftLimits(allowance=drift.allowance, limit=drift.limit, single_limit=drift.single_limit)
    state = DriftState()
    for check in history:
        if check.resumes or state.paused:
            state = DriftState()
        if check.z is not None:
            state = drift_step(state, check.z, limits)
    state = drift_step(DriftState() if resumes or state.paused else state, verdict.z, limits)
    return AaCheck(
        experiment=record.experiment_id,
        z=verdict.z,
        cusum=max(state.up, state.down),
        delta=verdict.delta,
        standard_error=verdict.standard_error,
        passed=not state.paused,
        reason=state.cause,
        resumes=resumes,
    )
