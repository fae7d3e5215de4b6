"""What a record from a worker must be before it counts, and the record of an experiment that was lost."""

from __future__ import annotations

from datetime import datetime, timedelta

from roundkit.core.clock import now_utc
from roundkit.measure.cluster.spool import run_identity
from roundkit.models.cluster import FinishedRun, RemoteReply, RemoteRequest, WorkerState
from roundkit.models.experiment import ExperimentRecord, SideIdentity
from roundkit.models.measurement import MeasurementRequest, SideRef


def arrival_problem(record: ExperimentRecord, remote: RemoteRequest, state: WorkerState) -> str | None:
    """Say in what a record is not one of the request; None where it is.

    Values are judged later, by the rules that judge every record; here only whether it belongs.

    Args:
        record: What came back.
        remote: What was sent.
        state: What the worker said of itself when it was.
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
        )
    ]
    # Noise and drift are a machine's own: a record may not choose the machine by which it is judged.
    facts.append(("machine", record.machine_sha256, state.machine_sha256))
    noise = request.noise_at(record.machine_sha256, device_set.id)
    facts.append(("noise between sessions", record.session_noise, noise))
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
    if record.trials and record.lease is None:
        return "it has trials, but held no device"
    ran = tuple(trial.planned for trial in record.trials)
    if ran != request.schedule[: len(ran)]:
        return "its trials are not those of the schedule"
    if record.outcome == "complete" and request.look_plan is None and len(ran) != len(request.schedule):
        return f"it is complete with {len(ran)} of {len(request.schedule)} trials"
    broken = [trial.problem for trial in record.trials if trial.problem is not None]
    if record.outcome == "complete" and (broken or not ran):
        return f"it is complete, though {broken[0] if broken else 'nothing ran'}"
    return None


def late_problem(reply: RemoteReply, finished: FinishedRun) -> str | None:
    """Say why what came late is not the record of the run that a worker spoke of; None where it is.

    Args:
        reply: What came.
        finished: What the worker spoke of.
    """
    run = run_identity(finished.store_sha256, finished.plan_digest, finished.experiment_id)
    if finished.run != run or reply.run != run:
        return "it is of another run"
    if reply.record is None:
        return "it is no record"
    if reply.record.experiment_id != finished.experiment_id:
        return f"it is the record of {reply.record.experiment_id}"
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


def clock_difference(remote: RemoteRequest, arrived: datetime) -> timedelta:
    """Return what is added to times of this machine so that they are by the coordinator's clock.

    Both of what is known of it are too little by a delay on the network, never too much: so nothing ends
    after its record arrived, and nothing begins before it was asked for.

    Args:
        remote: The request.
        arrived: When it arrived, by this machine's clock.
    """
    return max(timedelta(seconds=remote.clock_offset_s), remote.sent_utc - arrived)


def moved_in_time(record: ExperimentRecord, by: timedelta) -> ExperimentRecord:
    """Return a record whose times are by another clock; how long everything took stays.

    Args:
        record: What was measured here.
        by: What is added to each time.
    """
    lease = record.lease
    return record.model_copy(
        update={
            "started_utc": record.started_utc + by,
            "ended_utc": record.ended_utc + by,
            # The machine that measured counts from a start of its own.
            "ended_clock": None,
            "lease": None
            if lease is None
            else lease.model_copy(
                update={"acquired_utc": lease.acquired_utc + by, "released_utc": lease.released_utc + by}
            ),
            "trials": tuple(
                trial.model_copy(
                    update={"started_utc": trial.started_utc + by, "ended_utc": trial.ended_utc + by}
                )
                for trial in record.trials
            ),
        }
    )


def _unseen(side: SideRef) -> SideIdentity:
    return SideIdentity(commit=side.commit, tree=side.tree, files_sha256_before=None, files_sha256_after=None)
