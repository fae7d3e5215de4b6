"""One trial: its place in the schedule, its confined runs, its readings and its figures."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from roundkit.host.confine import EndReason
from roundkit.host.confine.types import Counter
from roundkit.models.base import Count, Digest, Record, UtcTime, is_missing
from roundkit.models.instruments import InstructionCount

Side = Literal["baseline", "candidate"]
Role = Literal["benchmark", "driver", "worker", "validator"]


class PlannedTrial(Record):
    """One trial of a schedule.

    Attributes:
        index: Position in time within the experiment.
        pair: Number of the pair, from 0; null for a warm-up.
        quad: Number of the quad (two pairs, one of either order), from 0.
        side: Which checkout runs.
        order: ``AB`` when the baseline goes first in this pair.
        seed: Seed of the benchmark's inputs; both sides of a pair share it.
    """

    index: Count
    pair: Count | None
    quad: Count
    side: Side
    order: Literal["AB", "BA"]
    seed: Count


class ConfinedRun(Record):
    """How one confined process of a trial ended; see :class:`roundkit.host.confine.Execution`.

    ``boundary`` is the digest under which the experiment keeps the boundary that held.

    Attributes:
        signal: Signal that ended it; null without one.
        end_reason: ``exited``, or the limit that ended it.
        cpu_s: Seconds of CPU time; null without a reading.
        cpu_source: Which counter gave it.
        peak_memory_bytes: Peak memory; null without a reading.
        stdout_tail: End of standard output; null where it went into a pipe. Untrusted text.
        stderr_tail: End of standard error; untrusted text.
        stdout_sha256: Digest of all of it.
        stderr_sha256: Digest of all of it.
        stdout_bytes: Its length; null where not counted.
        stderr_bytes: Its length; null where not counted.
        boundary: Digest under which the experiment keeps the boundary that held.
    """

    exit_code: int | None
    signal: int | None
    end_reason: EndReason
    wall_s: float | None
    cpu_s: float | None
    cpu_source: Counter | None
    peak_memory_bytes: int | None
    stdout_tail: str | None
    stderr_tail: str
    stdout_sha256: Digest | None
    stderr_sha256: Digest
    stdout_bytes: Count | None
    stderr_bytes: Count
    boundary: Digest
    detail: str = ""


class TrialResources(Record):
    """What the coordinator's own clocks and counters say of one trial; null with no reading.

    Attributes:
        cpu_s: Seconds of CPU time; null without a reading.
        peak_memory_bytes: Peak memory; null without a reading.
        load_1min: Load average of the machine; null without a reading.
    """

    wall_s: float | None
    cpu_s: float | None
    peak_memory_bytes: int | None
    load_1min: float | None


class Trial(Record):
    """One finished trial.

    Attributes:
        planned: Its place in the schedule.
        started_utc: When it began.
        ended_utc: When it ended.
        metrics: Every reported metric, all repetitions raw, in the metric's own unit.
        value: The deciding figure: the median over repetitions; null when there is none.
        problem: Null for a valid trial, else a reason such as ``candidate-crashed``.
        detail: One line that explains the problem.
        resources: The coordinator's own readings.
        executions: The confined runs, driver first, with the boundary that held.
        validated: Whether the validator accepted the outputs; null when it did not run.
        counted: The raw count, where instructions decide.
    """

    planned: PlannedTrial
    started_utc: UtcTime
    ended_utc: UtcTime
    metrics: dict[str, tuple[float, ...]]
    value: float | None
    problem: str | None
    detail: str | None
    resources: TrialResources
    executions: dict[Role, ConfinedRun]
    validated: bool | None
    counted: InstructionCount | None = Field(default=None, exclude_if=is_missing)
