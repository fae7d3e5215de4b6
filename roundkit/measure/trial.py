"""One trial: run the benchmark on one side, read its result, have the outputs validated."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from roundkit.core.clock import MS_IN_S, Deadline, now_utc
from roundkit.core.errors import Refused
from roundkit.host.confine import (
    ConfinementUnavailable,
    Execution,
    HostileOutput,
    confined_execute,
    read_output,
)
from roundkit.host.devices import Binding
from roundkit.measure.boundary import RESULT_NAME, Grant, TrialBoundary, TrialFiles, TrialFolders
from roundkit.measure.boundary_book import BoundaryBook
from roundkit.measure.broke import MeasurementBroke, is_full
from roundkit.measure.instruments import Counting, CountProblem, counting
from roundkit.measure.outputs import outputs_problem
from roundkit.measure.problems import Problem, end_problem, pair_problem, validator_problem
from roundkit.measure.result import ResultProblem, check_metrics, parse_result, reduce_repetitions
from roundkit.measure.result_watch import ResultWatch
from roundkit.measure.trees import remove_tree
from roundkit.models.instruments import InstructionCount
from roundkit.models.readings import (
    candidate_role,
    clock_role,
    counts_every_child,
    exceeds_clock,
    own_metrics,
    reads_peak_memory,
)
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import PlannedTrial, Role, Trial, TrialResources


@dataclass
class _Course:
    """What is known of a trial so far."""

    executions: dict[Role, Execution] = field(default_factory=dict)
    metrics: dict[str, tuple[float, ...]] = field(default_factory=dict)
    problem: Problem | None = None
    validated: bool | None = None
    counted: InstructionCount | None = None


def run_trial(
    spec: RunSpec,
    planned: PlannedTrial,
    files: TrialFiles,
    folder: Path,
    *,
    binding: Binding,
    book: BoundaryBook,
) -> Trial:
    """Run one trial and leave nothing of it behind but its record.

    Args:
        spec: How a trial runs.
        planned: Its place in the schedule.
        files: What the side's trials see.
        folder: Where the trial's private folders are made; does not exist yet, its parent does.
        binding: Cores and devices.
        book: Where the boundaries that held are kept.

    Returns:
        The trial; ``problem`` says whether it is valid.

    Raises:
        MeasurementBroke: the infrastructure failed; nothing is known about either side.
    """
    started = now_utc()
    load_1min = os.getloadavg()[0]
    course = _Course()
    with _infrastructure_errors(), private_folders(folder) as folders:
        boundary = TrialBoundary(spec, planned, files, folders, binding)
        with counting(spec.counting_tool, folders.count) as running:
            if spec.benchmark.single_process:
                _run_single(boundary, course, running)
            else:
                _run_pair(boundary, course, running)
            if course.problem is None and running.count is not None:
                _count(running.count, course)
        if course.problem is None:
            _read_figures(boundary, course)
        if course.problem is None:
            course.problem = outputs_problem(folders.trial)
        if course.problem is None and spec.validator is not None:
            _validate(boundary, course)
    _check_disk(course, folder.parent)
    problem = course.problem
    return Trial(
        planned=planned,
        started_utc=started,
        ended_utc=now_utc(),
        metrics=course.metrics,
        value=None if problem else reduce_repetitions(course.metrics[spec.metric.name]),
        problem=problem.code_of(planned.side) if problem else None,
        detail=problem.detail if problem else None,
        resources=_resources(spec, course, load_1min),
        executions={role: book.enter(execution) for role, execution in course.executions.items()},
        validated=course.validated,
        counted=course.counted,
    )


def _resources(spec: RunSpec, course: _Course, load_1min: float | None = None) -> TrialResources:
    """Return what the coordinator read of the process that runs the candidate."""
    run = course.executions[candidate_role(spec)]
    return TrialResources(
        wall_s=run.wall_s, cpu_s=run.cpu_s, peak_memory_bytes=run.peak_memory_bytes, load_1min=load_1min
    )


@contextmanager
def _infrastructure_errors() -> Iterator[None]:
    """Tell errors of the host from errors of the candidate."""
    try:
        yield
    except ConfinementUnavailable as error:
        raise MeasurementBroke(error.reason, str(error)) from error
    except Refused as error:
        raise MeasurementBroke(error.refusals[0].code, str(error)) from error


@contextmanager
def private_folders(folder: Path) -> Iterator[TrialFolders]:
    """Make the private folders of a trial, and remove them afterwards."""
    try:
        yield TrialFolders.make(folder)
    finally:
        remove_tree(folder)


def _check_disk(course: _Course, folder: Path) -> None:
    """Take a crash on a disk that is full, even without the trial's own files, for the host's fault."""
    if course.problem is not None and is_full(folder):
        raise MeasurementBroke("disk-full", f"no space is left on the disk of {folder}")


def _run_single(boundary: TrialBoundary, course: _Course, running: Counting) -> None:
    spec = boundary.spec
    with ResultWatch(boundary.folders.trial, RESULT_NAME) as watch:
        execution = execute_grant(
            boundary,
            boundary.single(),
            Deadline.after(spec.benchmark.timeout_s),
            before_start=running.before_start,
        )
        course.executions["benchmark"] = execution
        course.problem = end_problem(execution, spec.limits)
        written = watch.problem()
    if course.problem is None and written is not None:
        course.problem = Problem("result", written)


def _run_pair(boundary: TrialBoundary, course: _Course, running: Counting) -> None:
    """Run driver and worker side by side, the standard output of each the standard input of the other."""
    spec = boundary.spec
    deadline = Deadline.after(spec.benchmark.timeout_s)
    driver, worker = boundary.driver(), boundary.worker()
    to_driver, from_worker = os.pipe()
    to_worker, from_driver = os.pipe()
    # Each call takes its two descriptors over and closes them once its process has them, so that the
    # end of one process is the end of input for the other.
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="trial") as threads:
        drivers = threads.submit(execute_grant, boundary, driver, deadline, to_driver, from_driver)
        workers = threads.submit(
            execute_grant, boundary, worker, deadline, to_worker, from_worker, running.before_start
        )
    course.executions["driver"] = drivers.result()
    course.executions["worker"] = workers.result()
    course.problem = pair_problem(drivers.result(), workers.result(), spec.limits)


def _count(count: Callable[[], InstructionCount], course: _Course) -> None:
    """Take the count, after everything that was counted has ended."""
    try:
        course.counted = count()
    except CountProblem as error:
        course.problem = Problem("count", str(error))


def execute_grant(
    boundary: TrialBoundary,
    grant: Grant,
    deadline: Deadline,
    stdin: int | None = None,
    stdout: int | None = None,
    before_start: Callable[[int], None] | None = None,
) -> Execution:
    """Run one process of a trial behind the boundary that its grant describes."""
    spec = boundary.spec
    return confined_execute(
        grant.argv,
        cwd=grant.cwd,
        writable=grant.writable,
        readable=grant.readable,
        overlay=grant.overlay,
        deadline=deadline,
        env=grant.env,
        limits=spec.limits,
        cpus=boundary.binding.cpus if spec.pin_cpus else None,
        devices=grant.devices,
        stdin=stdin,
        stdout=stdout,
        before_start=before_start,
        peak_memory=reads_peak_memory(spec),
    )


def _read_figures(boundary: TrialBoundary, course: _Course) -> None:
    """Take the metrics from the result and from the coordinator's own readings, and check them."""
    spec = boundary.spec
    own = _own_readings(boundary.spec, course)
    own_instrument = spec.benchmark.instrument != "reported"
    guards = [guard.name for guard in spec.metric.guards if guard.name not in own]
    needed = bool(guards) or not own_instrument
    try:
        reported = _reported(boundary, needed=needed)
        check_metrics(reported, None if own_instrument else spec.metric.name, guards)
    except ResultProblem as error:
        course.problem = Problem("result", str(error))
        return
    # What the benchmark reports under a name that the coordinator reads itself is kept, but decides nothing.
    course.metrics = {
        f"reported.{name}" if name in own else name: values for name, values in reported.items()
    }
    course.metrics |= own
    clock = course.executions[clock_role(spec)]
    tolerance = spec.benchmark.clock_tolerance
    if own_instrument or tolerance is None or clock.wall_s is None:
        return
    if exceeds_clock(reported[spec.metric.name], clock.wall_s, tolerance):
        total = sum(reported[spec.metric.name])
        course.problem = Problem(
            "clock", f"reports {total:.3f} ms, but only {clock.wall_s * MS_IN_S:.3f} ms passed"
        )


def _own_readings(spec: RunSpec, course: _Course) -> dict[str, tuple[float, ...]]:
    """Return the metrics that are the coordinator's own: of the process that runs the candidate.

    Raises:
        MeasurementBroke: ``instrument-missing``: the host does not give one that the plan asks for.
    """
    own: dict[str, tuple[float, ...]] = {}
    if spec.benchmark.instrument == "cpu" and not counts_every_child(course.executions[candidate_role(spec)]):
        raise MeasurementBroke("instrument-missing", "no cgroup counts the CPU time of every child here")
    for name, value in own_metrics(spec, _resources(spec, course), course.counted).items():
        if not value:  # null, or finer than this host's counter can tell
            raise MeasurementBroke("instrument-missing", f"this host gives no reading for {name}")
        own[name] = (value,)
    return own


def _reported(boundary: TrialBoundary, *, needed: bool) -> dict[str, tuple[float, ...]]:
    try:
        data = read_output(boundary.folders.trial, RESULT_NAME, boundary.spec.limits.output_bytes)
    except HostileOutput as error:
        if error.reason == "missing" and not needed:
            return {}
        if error.reason == "missing":
            example = {"metrics": {boundary.spec.metric.name: 12.3}}
            raise ResultProblem(
                f"the benchmark wrote no result: it has to write JSON like {json.dumps(example)} to the file"
                " that ROUNDKIT_RESULT_PATH names"
            ) from error
        raise ResultProblem(error.detail) from error
    return parse_result(data)


def _validate(boundary: TrialBoundary, course: _Course) -> None:
    validator = boundary.spec.validator
    assert validator is not None
    execution = execute_grant(boundary, boundary.validator(), Deadline.after(validator.timeout_s))
    course.executions["validator"] = execution
    course.problem = validator_problem(execution)
    course.validated = course.problem is None
