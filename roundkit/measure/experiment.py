"""One experiment: lease, qualify, run the schedule, qualify again, record. Decides nothing."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from roundkit.core.clock import both_clocks, now_utc
from roundkit.core.resources import harness_folder
from roundkit.host.confine import sweep
from roundkit.host.devices import (
    NO_LIMITS,
    DeviceState,
    lease_names,
    machine_identity,
    machine_sha256,
    platform_named,
)
from roundkit.host.lease import HeldLease, acquire_set
from roundkit.host.turns import Turn
from roundkit.measure.boundary_book import BoundaryBook
from roundkit.measure.broke import DeviceBusy, MeasurementBroke, host_reason
from roundkit.measure.looks import Looks
from roundkit.measure.materialized import checkout_of
from roundkit.measure.provision import check_provision
from roundkit.measure.stage import Stage
from roundkit.measure.trees import remove_tree
from roundkit.measure.trial import run_trial
from roundkit.models.clocks import ClockPair
from roundkit.models.experiment import DeviceReading, ExperimentRecord, Lease, Outcome, SideIdentity
from roundkit.models.measurement import MeasurementRequest, SideRef
from roundkit.models.readings import unexplained_growth
from roundkit.models.round_plan import DeviceSet
from roundkit.models.trial import Side, Trial

Progress = Callable[[int, int, Trial], None]
"""Called after each trial with the number done, the number planned, and the trial."""


@dataclass
class _Course:
    """What has happened so far; always enough for a record."""

    book: BoundaryBook
    trials: list[Trial] = field(default_factory=list)
    before: tuple[DeviceState, ...] = ()
    after: tuple[DeviceState, ...] = ()
    digests_before: dict[Side, str] = field(default_factory=dict)
    digests_after: dict[Side, str] = field(default_factory=dict)
    outcome: Outcome = "complete"
    reason: str | None = None
    detail: str | None = None

    def end(self, outcome: Outcome, reason: str, detail: str | None) -> None:
        self.outcome, self.reason, self.detail = outcome, reason, detail


def run_experiment(
    request: MeasurementRequest,
    *,
    lease_root: Path,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
    turn: Turn | None = None,
) -> ExperimentRecord:
    """Run one experiment on the first of its device sets that is free.

    Trials stop at the first that broke. Whatever happens, the work folder is removed and what was done
    so far is in the record.

    Args:
        request: What to measure.
        lease_root: Where this host keeps leases.
        progress: Called after each trial.
        should_stop: Asked before each trial; True ends the experiment as interrupted.
        turn: Place in line for the one device set, of one who has waited.

    Raises:
        DeviceBusy: none of the device sets is free; nothing was started.
        Refused: ``unknown-platform``, ``lease-file``.
    """
    device_set, lease = lease_devices(request, lease_root, turn)
    started = now_utc()
    course = _Course(boundary_book(request))
    with lease:
        try:
            _measure(request, device_set, lease, course, progress, should_stop or _never)
        except MeasurementBroke as error:
            course.end("infrastructure", error.reason, error.detail)
        except OSError as error:
            course.end("infrastructure", host_reason(error), str(error))
        except MemoryError:
            course.end("infrastructure", "host-memory", "the coordinator ran out of memory")
        finally:
            remove_tree(Path(request.work_folder))
    return _record(request, device_set, lease, course, started)


def boundary_book(request: MeasurementRequest) -> BoundaryBook:
    """Return an empty book that writes this request's folders by their names."""
    places = {
        "work": Path(request.work_folder).resolve(),
        "incumbent": Path(request.incumbent_built).resolve(),
        "roundkit": harness_folder().parent,
    }
    bases = {side.base for side in (request.baseline, request.candidate) if side.base is not None}
    for base in sorted(bases):
        places["base"] = Path(base).resolve()
    if request.provision is not None:
        places["provision"] = Path(request.provision.path).resolve()
    return BoundaryBook(places)


def lease_devices(
    request: MeasurementRequest, lease_root: Path, turn: Turn | None = None
) -> tuple[DeviceSet, HeldLease]:
    """Take the first free device set that the request may use.

    Raises:
        DeviceBusy: none is free.
        Refused: ``unknown-platform``, ``lease-file``.
    """
    purpose = f"{request.purpose} {request.subject}"
    for device_set in request.device_sets:
        platform_named(device_set.platform)
        names = lease_names(device_set.platform, device_set.devices)
        lease = acquire_set(names, root=lease_root, purpose=purpose, round_id=request.round_id, turn=turn)
        if lease is not None:
            return device_set, lease
    sets = ", ".join(device_set.id for device_set in request.device_sets)
    raise DeviceBusy(f"every device set that {request.experiment_id} may use is held: {sets}")


def _measure(
    request: MeasurementRequest,
    device_set: DeviceSet,
    lease: HeldLease,
    course: _Course,
    progress: Progress | None,
    should_stop: Callable[[], bool],
) -> None:
    # The last holder may have died a moment ago: whatever of its trials is left is ended first.
    sweep()
    course.before = qualify_devices(device_set, ())
    refuse_problem("device-unqualified", course.before)
    course.digests_before = _digests(request)
    _refuse_change(request, course.digests_before)
    stage = Stage.prepare(request)
    noise = request.noise_at(machine_sha256(), device_set.id)
    looks = Looks(request.look_plan, noise, request.run_spec.metric.direction)
    with closing(_trials(request, device_set, stage, course.book, should_stop)) as trials:
        for trial in trials:
            course.trials.append(trial)
            if progress is not None:
                progress(len(course.trials), len(request.schedule), trial)
            if lost := lease.lost():
                raise MeasurementBroke("lease-lost", f"the lease file of {', '.join(lost)} was removed")
            if trial.problem is not None:
                broke: Outcome = "candidate-broke" if trial.planned.side == "candidate" else "baseline-broke"
                course.end(broke, trial.problem, trial.detail)
                break
            if looks.ended_by(trial):
                break
    course.after = qualify_devices(device_set, course.before)
    course.digests_after = _digests(request)
    if course.outcome != "complete":
        return  # a side that broke stays broken, whatever the device says afterwards
    refuse_problem("device-drift", course.after)
    _refuse_change(request, course.digests_after)
    if found := unexplained_growth(course.trials, request.run_spec):
        course.end("candidate-broke", "candidate-clock", found)


def qualify_devices(device_set: DeviceSet, earlier: Sequence[DeviceState]) -> tuple[DeviceState, ...]:
    """Read every device of a set, and judge it by what it said earlier."""
    platform = platform_named(device_set.platform)
    before = {state.device: state for state in earlier}
    limits = device_set.limits or NO_LIMITS
    return tuple(platform.qualify(device, before.get(device), limits) for device in device_set.devices)


def refuse_problem(reason: str, states: Sequence[DeviceState]) -> None:
    """Raise what the devices say against measuring on them.

    Raises:
        MeasurementBroke: with that reason.
    """
    problems = [state.problem for state in states if state.problem is not None]
    if problems:
        raise MeasurementBroke(reason, "; ".join(problems))


def _digests(request: MeasurementRequest) -> dict[Side, str]:
    return {
        "baseline": checkout_of(request.baseline).digest(),
        "candidate": checkout_of(request.candidate).digest(),
    }


def _refuse_change(request: MeasurementRequest, found: dict[Side, str]) -> None:
    references: dict[Side, SideRef] = {"baseline": request.baseline, "candidate": request.candidate}
    check_provision(request.provision)
    for side, reference in references.items():
        if found[side] != reference.built_sha256:
            raise MeasurementBroke(
                "checkout-changed", f"the built {side} is not what was built: {reference.built}"
            )


def _trials(
    request: MeasurementRequest,
    device_set: DeviceSet,
    stage: Stage,
    book: BoundaryBook,
    should_stop: Callable[[], bool],
) -> Generator[Trial, None, None]:
    binding = platform_named(device_set.platform).bind(device_set.devices)
    # A copy's layout favours one side or the other by chance. Were it shared by the two pairs of a quad, it
    # would be in the estimate twice and in its standard error once.
    for _, grouped in itertools.groupby(request.schedule, key=lambda planned: planned.pair):
        pair = tuple(grouped)
        with stage.fresh_copies(request, first=pair[0].side) as sides:
            for planned in pair:
                if should_stop():
                    raise MeasurementBroke("interrupted", "the experiment was stopped by hand")
                # What an earlier trial or copy left in the write-back queue would run during this one.
                os.sync()
                yield run_trial(
                    request.run_spec,
                    planned,
                    sides[planned.side],
                    stage.new_trial_folder(),
                    binding=binding,
                    book=book,
                )


def _record(
    request: MeasurementRequest,
    device_set: DeviceSet,
    lease: HeldLease,
    course: _Course,
    started: datetime,
) -> ExperimentRecord:
    clock = ClockPair.of(both_clocks())
    ended = clock.utc if clock is not None else now_utc()
    return ExperimentRecord(
        format="roundkit-experiment/1",
        experiment_id=request.experiment_id,
        round_id=request.round_id,
        purpose=request.purpose,
        subject=request.subject,
        lane=request.lane,
        attempt=request.attempt,
        run_spec_sha256=request.run_spec.digest(),
        baseline=_identity(request.baseline, "baseline", course),
        candidate=_identity(request.candidate, "candidate", course),
        started_utc=started,
        ended_utc=ended,
        ended_clock=clock,
        lease=Lease(
            device_set=device_set.id,
            devices=device_set.devices,
            acquired_utc=lease.acquired_utc,
            released_utc=ended,
            holder_pid=lease.holder_pid,
        ),
        machine=machine_identity(),
        machine_sha256=machine_sha256(),
        devices_before=tuple(map(_reading, course.before)),
        devices_after=tuple(map(_reading, course.after)),
        trials=tuple(course.trials),
        boundaries=course.book.boundaries,
        look_plan=request.look_plan,
        session_noise=request.noise_at(machine_sha256(), device_set.id),
        outcome=course.outcome,
        reason=course.reason,
        detail=course.detail,
    )


def _identity(reference: SideRef, side: Side, course: _Course) -> SideIdentity:
    return SideIdentity(
        commit=reference.commit,
        tree=reference.tree,
        checkout=checkout_of(reference).kind,
        files_sha256_before=course.digests_before.get(side),
        files_sha256_after=course.digests_after.get(side),
    )


def _reading(state: DeviceState) -> DeviceReading:
    return DeviceReading(
        device=state.device, identity=state.identity, readings=dict(state.readings), problem=state.problem
    )


def _never() -> bool:
    return False
