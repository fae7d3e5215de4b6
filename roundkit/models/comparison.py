"""Two checkouts compared outside a round, and a benchmark's noise: all that recomputing them takes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from roundkit.host.confine import Limits
from roundkit.host.tuning import TuningFact
from roundkit.models.base import CommitId, Count, Digest, Identifier, PositiveSeconds, Record, UtcTime
from roundkit.models.campaign import Benchmark, Command, Metric, Noise
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.instruments import CountingTool, Instrument
from roundkit.models.ledger import CommandLog
from roundkit.models.round_plan import DeviceSet, FrozenRuntime, Gates
from roundkit.models.run_spec import RunSpec
from roundkit.models.verdict import VerdictRecord


class ComparedSide(Record):
    """One side of a comparison.

    Attributes:
        given: The side as a person named it.
        kind: A folder as it lay there, or a revision of a git repository.
        commit: The commit; for a folder the digest over its files, as is ``tree``.
        tree: Its tree.
        files_sha256: Digest over its files, of either kind: equal ones are the same files.
    """

    given: str
    kind: Literal["folder", "revision"]
    commit: CommitId
    tree: CommitId
    files_sha256: Digest


class ComparisonPlan(Record):
    """All that was asked for. The run specification follows from it and holds its digest.

    Attributes:
        comparison_id: Name of the comparison in leases and records.
        planned_utc: When it began.
        baseline: The side that is to be beaten; protected files come from it.
        candidate: The side that wants to beat it.
        build: What builds either side; null when nothing does.
        target_package: The package whose import must come from the measured checkout; null for none.
        metric: What decides, and which way of it is better.
        benchmark: The command, and what it is measured with.
        validator: Judges the outputs of each trial; null where nobody does.
        runtime: The interpreter and the readable folders.
        environment: Variables of every command.
        limits: What each command may use.
        protected_paths: Globs whose files come from the baseline on both sides.
        hidden_paths: Globs whose files only the validator sees.
        gates: The thresholds.
        counting_tool: What counts instructions, where they decide.
        device_sets: Any one of these may be used.
        secret_sha256: Digest of the secret, from which coins and seeds come.
    """

    format: Literal["roundkit-comparison-plan/2"]
    comparison_id: Identifier
    planned_utc: UtcTime
    baseline: ComparedSide
    candidate: ComparedSide
    build: Command | None
    target_package: str | None
    metric: Metric
    benchmark: Benchmark
    validator: Command | None
    runtime: FrozenRuntime
    environment: dict[str, str]
    limits: Limits
    protected_paths: tuple[str, ...]
    hidden_paths: tuple[str, ...]
    gates: Gates
    counting_tool: CountingTool | None
    device_sets: Annotated[tuple[DeviceSet, ...], Field(min_length=1)]
    secret_sha256: Digest


class Environment(Record):
    """Where it was measured.

    Attributes:
        roundkit: Version of roundkit.
        python: Version of the Python that roundkit ran on; the benchmark's is in the run specification.
        system: Kernel and architecture.
        machine: The machine's hardware, without host name.
        tuning: What times depend on, as it was before the first trial.
    """

    roundkit: str
    python: str
    system: str
    machine: str
    tuning: tuple[TuningFact, ...]


class Comparison(Record):
    """A comparison outside a round, whole: anybody can take its verdict again from the raw samples.

    Attributes:
        run_spec: How a trial ran; follows from the plan.
        secret: The secret in hex, revealed: coins and seeds follow from it.
        builds: How build and import probe ended, baseline first.
        experiment: The experiment that decided; null when the candidate could not be built.
        earlier: Experiments before it that decided nothing, and why is in them.
        verdict: What the experiment gives under the run specification.
        environment: The machine and what ran on it.
    """

    format: Literal["roundkit-comparison/1"]
    plan: ComparisonPlan
    run_spec: RunSpec
    secret: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    builds: tuple[tuple[CommandLog, ...], tuple[CommandLog, ...]]
    experiment: ExperimentRecord | None
    earlier: tuple[ExperimentRecord, ...]
    verdict: VerdictRecord
    environment: Environment


class PairsNeeded(Record):
    """How many pairs show a gain with 80 % power; the gain is a fraction.

    Attributes:
        gain: A true gain, as a fraction.
        pairs: Pairs that show it with 80 % power.
    """

    gain: float
    pairs: Count


class InstrumentNoise(Record):
    """A benchmark's A/A noise under one instrument.

    Attributes:
        instrument: What was read.
        missing: Why there are no figures; null where there are.
        pairs: Pairs behind the figures.
        median: Median of all trials, in ``unit``.
        sigma: Standard deviation of one trial relative to its neighbour, a fraction.
        autocorrelation: Lag-1 autocorrelation of the trials' logs in order of time.
        difference: What A/A showed as a gain, a fraction; there is none.
        order_effect: Effect of running second, a log ratio, with the ends of its 95 % interval.
        order_low: Lower end of the order effect's 95 % interval.
        order_high: Upper end of it.
        needed: Pairs for each gain asked for.
        detectable: Smallest gain that ``pairs`` pairs show with 80 % power, a fraction.
        detectable_planned: The same with ``planned_pairs`` pairs.
        planned_pairs: Pairs asked for, else those of the shipped test plan.
    """

    instrument: Instrument
    unit: str
    missing: str | None = None
    pairs: Count
    median: float | None = None
    sigma: float | None = None
    autocorrelation: float | None = None
    difference: float | None = None
    order_effect: float | None = None
    order_low: float | None = None
    order_high: float | None = None
    needed: tuple[PairsNeeded, ...] = ()
    detectable: float | None = None
    detectable_planned: float | None = None
    planned_pairs: Count


class NoiseReport(Record):
    """A benchmark against itself, under each instrument that the machine has.

    Attributes:
        instruments: What each instrument showed.
        trial_s: Seconds that one trial takes, the median.
        noise: What goes into a campaign's test plan; null where the chosen instrument has no figures.
        run_specs: How the trials of each experiment ran, in order of ``experiments``.
        experiments: The raw trials.
        secret: Behind the order of trials.
        environment: The machine and what ran on it.
    """

    format: Literal["roundkit-noise/1"]
    plan: ComparisonPlan
    instruments: tuple[InstrumentNoise, ...]
    trial_s: PositiveSeconds
    noise: Noise | None
    run_specs: tuple[RunSpec, ...]
    experiments: tuple[ExperimentRecord, ...]
    secret: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    environment: Environment
