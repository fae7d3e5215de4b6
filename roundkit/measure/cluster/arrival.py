"""What a record from a worker must be before it counts, and the record of an experiment that was lost."""

from __future__ import annotations

from datetime import datetime

from roundkit.core.clock import now_utc
from roundkit.models.cluster import RemoteRequest, WorkerState
from roundkit.models.experiment import ExperimentRecord, SideIdentity
from roundkit.models.measurement import MeasurementRequest, SideRef


def arrival_problem(record: ExperimentRecord, remote: RemoteRequest) -> str | None:
    """Say in what a record is not one of the request; None where it is.

    Values are judged later, by the rules that judge every record; here only whether it belongs.

    Args:
        record: What came back.
        remote: What was sent.
    """
    request = remote.request
    device_set = request.device_sets[0]
    facts: list[tuple[str, object, object]] = [
        (name, getattr(record, name), getattr(request, name))
        for name in (
            "experiment_id",
            "round_id",
            "purpose",
            "subject",
            "lane",
            "attempt",
            "look_plan",
            "session_noise",
        )
    ]
    facts.append(("run specification", record.run_spec_sha256, request.run_spec.digest()))
    if record.lease is not None:
        held = record.lease.device_set, record.lease.devices
        facts.append(("device set", held, (device_set.id, device_set.devices)))
    for name, side, given in (
        ("baseline", record.baseline, request.baseline),
        ("candidate", record.candidate, request.candidate),
    ):
        facts.append((f"{name}'s commit", (side.commit, side.tree), (given.commit, given.tree)))
        if record.outcome == "complete":
            digests = side.files_sha256_before, side.files_sha256_after
            facts.append((f"{name}'s files", digests, (given.built_sha256, given.built_sha256)))
    for name, found, expected in facts:
        if found != expected:
            return f"its {name} is {found}, asked for was {expected}"
    ran = tuple(trial.planned for trial in record.trials)
    if ran != request.schedule[: len(ran)]:
        return "its trials are not those of the schedule"
    return None


def lost_record(
    request: MeasurementRequest, state: WorkerState, started: datetime, reason: str, detail: str
) -> ExperimentRecord:
    """Return the record of an experiment whose own never came: infrastructure, without a sample.

    Args:
        request: What was asked for.
        state: What the worker last said of itself.
        started: When it was handed over.
        reason: Stable code.
        detail: What was found.
    """
    return ExperimentRecord(
        format="roundkit-experiment/1",
        experiment_id=request.experiment_id,
        round_id=request.round_id,
        purpose=request.purpose,
        subject=request.subject,
        lane=request.lane,
        attempt=request.attempt,
        run_spec_sha256=request.run_spec.digest(),
        baseline=_unseen(request.baseline),
        candidate=_unseen(request.candidate),
        started_utc=started,
        ended_utc=now_utc(),
        lease=None,
        machine=state.machine,
        machine_sha256=state.machine_sha256,
        devices_before=(),
        devices_after=(),
        trials=(),
        boundaries={},
        look_plan=request.look_plan,
        session_noise=request.session_noise,
        outcome="infrastructure",
        reason=reason,
        detail=detail,
    )


def _unseen(side: SideRef) -> SideIdentity:
    return SideIdentity(commit=side.commit, tree=side.tree, files_sha256_before=None, files_sha256_after=None)
