"""What is handed to a device pool and what comes back: request, trials, experiment, verdict."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from roundkit.host.confine import Boundary, EndReason, Limits
from roundkit.host.confine.types import Counter
from roundkit.models.base import CommitId, Count, Digest, Identifier, Record, UtcTime, is_missing
from roundkit.models.campaign import Benchmark, Command, Metric
from roundkit.models.instruments import CountingTool, InstructionCount
from roundkit.models.round_plan import DeviceSet, FrozenRuntime, Gates

Side = Literal["baseline", "candidate"]
CheckoutKind = Literal["plain", "overlay"]
"""Whether a checkout is a folder of its own or a layer over one that it shares; both give the same files."""
Role = Literal["benchmark", "driver", "worker", "validator"]
Purpose = Literal["ticket", "aa", "compose", "rerun", "fallback", "standalone", "compare"]
VerdictName = Literal["pass", "fail", "not-measured", "invalid"]
Outcome = Literal["complete", "candidate-broke", "baseline-broke", "infrastructure"]


class RunSpec(Record):
    """Everything that decides how a trial runs, apart from which checkout it runs on.

    Attributes:
        round_digest: The frozen plan that these fields were copied from.
        protected_paths: Globs whose files come from the incumbent, whatever the candidate holds.
        hidden_paths: Globs whose files only the validator sees.
        repetitions: Timed runs within one trial.
        pin_cpus: Whether trials are pinned to the cores of their device set.
        counting_tool: What counts instructions, the same for all trials of a round; null where they do not
            decide, and then not in canonical bytes.
    """

    format: Literal["roundkit-run-spec/1"]
    round_digest: Digest
    metric: Metric
    benchmark: Benchmark
    validator: Command | None
    runtime: FrozenRuntime
    environment: dict[str, str]
    limits: Limits
    protected_paths: tuple[str, ...]
    hidden_paths: tuple[str, ...]
    gates: Gates
    repetitions: int
    pin_cpus: bool
    counting_tool: CountingTool | None = Field(default=None, exclude_if=is_missing)

    @property
    def forgeable(self) -> bool:
        """Whether the candidate can reach its figure: it reports, or valgrind counts in its own memory."""
        return self.benchmark.single_process or self.counting_tool == "valgrind"


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


class SideRef(Record):
    """One side of an experiment.

    Attributes:
        commit: The commit that is measured.
        tree: Its tree id.
        built: Absolute path of the built checkout from which fresh copies are made.
        base: Absolute path of the checkout that the built one is a layer over; null for a plain one.
        built_sha256: Digest over that checkout's files.
    """

    commit: CommitId
    tree: CommitId
    built: str
    base: str | None = None
    built_sha256: Digest


class ProvisionRef(Record):
    """What the plan's ``provision`` command made, once for the whole round.

    Attributes:
        path: Absolute folder; mounted read-only in every build, smoke and trial.
        sha256: Digest over its files.
    """

    path: str
    sha256: Digest


class LookPlan(Record):
    """When an experiment is looked at before its last pair, and what ends it there.

    Attributes:
        looks: Numbers of pairs, rising; the last is the cap.
        boundaries: Evidence, in sigma, that ends the experiment at each look.
        statistic: The test behind it, where the plan fixes one.
        futility_power: Probability of crossing the last boundary below which it ends; null goes on.
        futility_optimism: Standard errors by which the effect seen so far is raised for that.
    """

    looks: Annotated[tuple[int, ...], Field(min_length=1)]
    boundaries: tuple[float, ...]
    statistic: Literal["t", "signed-rank", "each-order"] | None = None
    futility_power: float | None
    futility_optimism: float


class SessionNoise(Record):
    """Noise between sessions, as the round's A/A checks had it when an experiment began.

    Attributes:
        checks: How many A/A checks there were.
        variance: Of an estimate, beyond its own standard error, in squared log units.
    """

    checks: Count
    variance: float


class MeasurementRequest(Record):
    """One experiment to run. Pickles and serialises; a cluster engine takes the same request.

    Attributes:
        experiment_id: Unique within the round; a repeated experiment gets a new one.
        subject: Ticket, composition step or check that the experiment is for.
        baseline: The side that is to be beaten.
        candidate: The side that wants to beat it.
        incumbent_built: Checkout that protected files are mounted from.
        provision: What the round's ``provision`` command made; null where the plan has none.
        device_sets: Any one of these may be used.
        schedule: Every trial in order.
        look_plan: When it may end early; null where it has every pair.
        session_noise: Noise between sessions that its evidence is weakened by; null where it is not known.
        work_folder: Absolute folder for copies, scratch and results of this experiment.
    """

    format: Literal["roundkit-measurement-request/1"]
    experiment_id: Identifier
    round_id: Identifier
    purpose: Purpose
    subject: str
    lane: Identifier | None
    attempt: Count
    run_spec: RunSpec
    baseline: SideRef
    candidate: SideRef
    incumbent_built: str
    provision: ProvisionRef | None = None
    device_sets: Annotated[tuple[DeviceSet, ...], Field(min_length=1)]
    schedule: tuple[PlannedTrial, ...]
    look_plan: LookPlan | None = None
    session_noise: SessionNoise | None = None
    work_folder: str


class ConfinedRun(Record):
    """How one confined process of a trial ended; see :class:`roundkit.host.confine.Execution`.

    ``boundary`` is the digest under which the experiment keeps the boundary that held.
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
    """What the coordinator's own clocks and counters say of one trial; null with no reading."""

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


class Lease(Record):
    """One interval in which an experiment held a device set."""

    device_set: Identifier
    devices: tuple[str, ...]
    acquired_utc: UtcTime
    released_utc: UtcTime
    holder_pid: int


class DeviceReading(Record):
    """What a device said before or after an experiment; ``problem`` is null when it qualified."""

    device: str
    identity: str
    readings: dict[str, float | str | None]
    problem: str | None


class SideIdentity(Record):
    """What one side was: commit, tree, and the digest of its built files before and after the experiment.

    A digest is null where the experiment ended, by its ``reason``, before it was taken. ``checkout`` says how
    its files were laid on the disk, and is not written where it is ``plain``, as in all older evidence.
    """

    commit: CommitId
    tree: CommitId
    checkout: CheckoutKind = Field(default="plain", exclude_if=lambda kind: kind == "plain")
    files_sha256_before: Digest | None
    files_sha256_after: Digest | None


class ExperimentRecord(Record):
    """One experiment as it was run. Nothing in it is a decision.

    Attributes:
        outcome: ``complete``, or which side broke it.
        reason: Stable code of what broke; null when complete.
        boundaries: Every boundary that held around a trial, by its digest. Trials alike share one: the
            coordinator's own folders are written ``{work}``, ``{incumbent}`` and ``{roundkit}``, numbers of
            trials ``N``.
        machine: Name of the machine's hardware (processor, cores), without host name.
        machine_sha256: Which machine it was, by a digest over the hardware's own identity; null where the
            hardware tells none.
    """

    format: Literal["roundkit-experiment/1"]
    experiment_id: Identifier
    round_id: Identifier
    purpose: Purpose
    subject: str
    lane: Identifier | None
    attempt: Count
    run_spec_sha256: Digest
    baseline: SideIdentity
    candidate: SideIdentity
    started_utc: UtcTime
    ended_utc: UtcTime
    lease: Lease | None
    machine: str
    machine_sha256: Digest | None = Field(default=None, exclude_if=is_missing)
    devices_before: tuple[DeviceReading, ...]
    devices_after: tuple[DeviceReading, ...]
    trials: tuple[Trial, ...]
    boundaries: dict[Digest, Boundary]
    look_plan: LookPlan | None = None
    session_noise: SessionNoise | None = None
    outcome: Outcome
    reason: str | None
    detail: str | None


class LookRecord(Record):
    """One look at an experiment before or at its last pair.

    Attributes:
        pairs: Pairs at this look.
        boundary: Evidence that ends the experiment here, in sigma.
        statistic: Test behind ``z``.
        z: Evidence seen.
        conditional_power: Probability of crossing the last boundary under the optimistic effect; null at the
            last look and without a futility rule.
        stop: Why the experiment ended here; null when it went on.
    """

    pairs: Count
    boundary: float
    statistic: Literal["t", "signed-rank", "each-order"] | None
    z: float
    conditional_power: float | None
    stop: Literal["gain", "loss", "futility", "last"] | None


class VerdictRecord(Record):
    """A verdict with the numbers behind it; recomputable from the experiment and the gates.

    Attributes:
        gain: Estimated gain as a fraction; null when nothing was estimated.
        gain_unit: The same in the metric's own unit, at the baseline's median.
        low: Lower end of the 95 % interval of the gain.
        high: Upper end of it.
        z: Evidence against no gain, in sigma.
        order_effect: Estimated order effect as a log ratio, with its standard error.
        smallest_detectable_gain: What this many pairs could have shown at 80 % power.
        z_required: Evidence that was required: ``sigma_min``, or the boundary of the last look.
        session_sd: Standard deviation between sessions that interval and evidence contain, a log ratio; null
            where it is not known.
        looks: Every look of an experiment that may end early; none where all pairs were measured.
    """

    verdict: VerdictName
    reason: str
    sentence: str
    pairs: Count
    gain: float | None
    gain_unit: float | None
    low: float | None
    high: float | None
    z: float | None
    delta: float | None
    standard_error: float | None
    statistic: Literal["t", "signed-rank", "each-order"] | None
    order_effect: float | None
    order_standard_error: float | None
    baseline_median: float | None
    candidate_median: float | None
    smallest_detectable_gain: float | None
    z_required: float | None = None
    session_sd: float | None = None
    looks: tuple[LookRecord, ...] = ()
    guards: dict[str, bool] = Field(default_factory=dict)
    forgeable: bool
