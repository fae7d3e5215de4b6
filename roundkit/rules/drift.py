"""A/A checks: the incumbent against itself, and when their history says that the machine drifts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roundkit.models.campaign import Drift
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import AaCheck
from roundkit.models.round_plan import DeviceSet
from roundkit.models.verdict import VerdictRecord
from roundkit.stats.differences import gain_fraction
from roundkit.stats.drift import DriftLimits, DriftState, drift_step

Place = tuple[str | None, str | None]
"""Machine, by its digest, and device set; either is null where it is not known."""


def measured_on(record: ExperimentRecord) -> Place:
    """Return the place of an experiment, which has an A/A history of its own: machine and device set."""
    return record.machine_sha256, None if record.lease is None else record.lease.device_set


def same_place(
    record: ExperimentRecord, history: Sequence[AaCheck], records: Mapping[str, ExperimentRecord]
) -> list[AaCheck]:
    """Return the checks that were made where an experiment was; machines drift each on its own.

    Args:
        record: The experiment.
        history: Earlier checks of the round, oldest first.
        records: Their experiments by id; a check without one counts everywhere.
    """
    here = measured_on(record)
    return [
        check
        for check in history
        if check.experiment not in records or measured_on(records[check.experiment]) == here
    ]


def check_order(
    device_sets: Sequence[DeviceSet], history: Sequence[AaCheck], records: Mapping[str, ExperimentRecord]
) -> tuple[DeviceSet, ...]:
    """Return device sets in the order in which the next A/A check prefers them.

    First those whose own last check failed, wherever a pause was ended since, then those that were checked
    least, so that each set of a round comes to its turn.

    Args:
        device_sets: The plan's sets.
        history: The round's checks so far, oldest first.
        records: Their experiments by id.
    """
    made: dict[str | None, list[AaCheck]] = {}
    for check in history:
        if check.experiment in records:
            made.setdefault(measured_on(records[check.experiment])[1], []).append(check)

    def rank(one: DeviceSet) -> tuple[bool, int]:
        own = made.get(one.id, [])
        return not own or own[-1].passed, len(own)

    return tuple(sorted(device_sets, key=rank))


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
        history: Earlier checks at the same place, oldest first; see :func:`same_place`.
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


def check_words(check: AaCheck, drift: Drift) -> str:
    """Say what an A/A check saw, and how much of it the plan allows.

    Args:
        check: One that was measured to its end.
        drift: The plan's limits.
    """
    assert check.z is not None
    assert check.cusum is not None
    seen = "" if check.delta is None else f" by {round(100 * gain_fraction(check.delta), 2) + 0.0:+.2f} %"
    return (
        f"the incumbent differs from itself{seen} (z {check.z:+.2f}, at most {drift.single_limit:g};"
        f" drift {check.cusum:.2f}, at most {drift.limit:g})"
    )
