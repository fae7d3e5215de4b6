"""The campaign plan, as its owner writes it in ``campaign.yaml``."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from roundkit.host.confine import Limits
from roundkit.models.base import (
    Argv,
    Digest,
    Fraction,
    Glob,
    Identifier,
    PositiveSeconds,
    Record,
    is_missing,
)
from roundkit.models.instruments import UNITS, Instrument
from roundkit.models.search_plan import NegativeMemory, SearchPlanEntry, SearchPlanRevision, SearchState

Direction = Literal["lower", "higher"]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class RepositoryRef(Record):
    """Where the program lies: a path relative to the campaign file, and the branch that is improved.

    Attributes:
        path: The repository, relative to the campaign file.
        branch: The branch that the campaign improves.
    """

    path: str = "."
    branch: str


class GuardMetric(Record):
    """A metric that may not get worse than a limit.

    ``limit`` is the allowed worsening as a fraction of the baseline, or an absolute bound in ``unit``.

    Attributes:
        name: What the benchmark reports it as; ``peak_memory_bytes`` is the coordinator's own reading.
        limit: The allowed worsening as a fraction of the baseline, or an absolute bound in ``unit``.
        unit: Null: the limit is a fraction.
    """

    name: Identifier
    direction: Direction
    limit: float
    unit: str | None = None


class Metric(Record):
    """The one metric that decides, and the guards beside it.

    Attributes:
        name: What the benchmark reports it as.
        guards: Metrics that may not get worse than a limit.
    """

    name: Identifier
    unit: str
    direction: Direction
    guards: tuple[GuardMetric, ...] = ()


class Command(Record):
    """One confined command. ``{python}`` stands for the plan's interpreter.

    Attributes:
        argv: Program and arguments; it starts at the top of the checkout, without a shell.
        timeout_s: When it is ended, in seconds.
    """

    argv: Argv
    timeout_s: PositiveSeconds


class Benchmark(Record):
    """How one trial runs: as a protected driver and a worker, or as one process (forgeable).

    Attributes:
        argv: The single-process command; null when driver and worker are given.
        driver: The protected process that holds inputs, clock and result.
        worker: The process that imports the candidate and answers over a pipe.
        timeout_s: Wall-clock limit of one trial; of the slowed one where the instrument slows it.
        instrument: What is measured, and so what the metric's unit is.
        clock_tolerance: Reported time may exceed the coordinator's wall clock by at most this fraction;
            null when the metric is not a time in milliseconds.
    """

    argv: Argv | None = None
    driver: Argv | None = None
    worker: Argv | None = None
    timeout_s: PositiveSeconds
    instrument: Instrument
    clock_tolerance: float | None = None

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        single, double = self.argv is not None, self.driver is not None and self.worker is not None
        if single == double or (self.driver is None) != (self.worker is None):
            raise ValueError("give either `argv`, or both `driver` and `worker`")
        return self

    @property
    def single_process(self) -> bool:
        """Whether the candidate runs in the process that reports the result."""
        return self.argv is not None


class Runtime(Record):
    """What stands ready inside the boundary beside the system's own folders.

    Attributes:
        python: Absolute path of the interpreter that ``{python}`` stands for; ``auto`` is resolved by
            ``prepare`` to the interpreter that roundkit itself runs on, outside any virtual environment.
        readable: Further absolute folders that commands may read.
    """

    python: str = "auto"
    readable: tuple[str, ...] = ()


class Noise(Record):
    """What ``roundkit noise`` found on one version of the program; null where nobody ran it.

    Attributes:
        sigma: Relative standard deviation of one trial.
        instrument: The instrument that it holds for.
        machine: The machine that it was measured on.
        date: When.
        trial_s: Seconds that one trial takes, from which a round's cost is forecast.
    """

    sigma: Fraction
    instrument: Instrument
    machine: str
    date: str
    trial_s: PositiveSeconds | None = None


class Drift(Record):
    """Limits for the A/A history, in units of one standard error.

    Attributes:
        allowance: What each check's z loses before it is added up.
        limit: Sum beyond which the queue pauses.
        single_limit: Evidence of one check beyond which it pauses.
    """

    allowance: Annotated[float, Field(ge=0.0)]
    limit: Annotated[float, Field(gt=0.0)]
    single_limit: Annotated[float, Field(gt=0.0)]


class EarlyStopping(Record):
    """When the experiment of a ticket may end before its last pair.

    It is looked at after ``first_look`` pairs and after every ``every`` more. A gain or a loss ends it once
    the evidence is beyond that look's boundary: the one-sided error that ``sigma_min`` stands for is spent as
    the power ``spending_exponent`` of the share of pairs that is in.

    Attributes:
        first_look: Pairs at the first look; even, at least 6.
        every: Pairs between looks; even.
        spending_exponent: How late the error is spent.
        futility_power: Stop as well when a gain is reached at the last look with less than this probability;
            null goes on.
        futility_optimism: Standard errors by which the effect seen so far is raised for that.
    """

    first_look: Annotated[int, Field(ge=6, multiple_of=2)]
    every: Annotated[int, Field(ge=2, multiple_of=2)]
    spending_exponent: Annotated[float, Field(gt=0.0)]
    futility_power: Fraction | None
    futility_optimism: Annotated[float, Field(ge=0.0)]


class TestPlan(Record):
    """The gates. A round may tighten them and never loosen them.

    Attributes:
        ab_ba_pairs: Largest number of pairs of one experiment; even, at least 6.
        repetitions: Timed runs within one trial, reduced by the median.
        min_gain: The rollback line: a gain under this fraction is not kept.
        loss_margin: A loss beyond this fraction is a regression.
        sigma_min: How many sigma of evidence a verdict needs.
        order_margin: An order effect beyond two of its standard errors withholds a verdict, since it may hide
            a carry-over; one no larger than this fraction is too small to matter beside the gains sought.
        remeasure_limit: How often an experiment that broke by no fault of the candidate is repeated.
        order_repeats: How often what an order effect kept from a verdict is; once where not given.
        early_stopping: When the experiment of a ticket may end early; null measures every pair. What close
            measures always has every pair, since an experiment that stopped on a gain overstates it.
        statistic: The test behind the evidence; null is t below 12 pairs and the exact signed rank from
            there. ``each-order`` asks either order by itself, which no carry-over from side to side passes.
        session_checks: From how many A/A checks on the noise between sessions is estimated from them, and
            added to every later interval; null never does.
        noise: The machine's noise, when it was measured.
        drift: CUSUM allowance and limit over A/A checks, and the limit of a single check, all in sigma.
        validator_hashes: SHA-256 of validator files, when the owner wants them pinned.
    """

    __test__ = False

    ab_ba_pairs: Annotated[int, Field(ge=6, multiple_of=2)]
    repetitions: Annotated[int, Field(ge=1)]
    min_gain: Fraction
    loss_margin: Fraction
    sigma_min: Annotated[float, Field(gt=0.0)]
    order_margin: Fraction
    remeasure_limit: Annotated[int, Field(ge=0)]
    order_repeats: Annotated[int, Field(ge=0)] | None = Field(default=None, exclude_if=is_missing)
    early_stopping: EarlyStopping | None = None
    statistic: Literal["t", "signed-rank", "each-order"] | None = None
    session_checks: Annotated[int, Field(ge=1)] | None = None
    noise: Noise | None = None
    drift: Drift
    validator_hashes: dict[str, Digest] = Field(default_factory=dict)


class CampaignBudget(Record):
    """How many lanes one round may have.

    Attributes:
        lanes_per_round: Most lanes of one round.
    """

    lanes_per_round: Annotated[int, Field(ge=1)]


class IntakeLimits(Record):
    """How large one submission may be: files, bytes of one file, bytes of all of them together.

    Attributes:
        max_files: Most files of one submission.
        max_file_bytes: Largest file.
        max_total_bytes: Most bytes of all of them together.
    """

    max_files: Annotated[int, Field(ge=1)]
    max_file_bytes: Annotated[int, Field(ge=1)]
    max_total_bytes: Annotated[int, Field(ge=1)]


class CampaignPlan(Record):
    """A long effort to improve one program: search plan, gates and state.

    Attributes:
        campaign_id: Its name: letters, digits, ``.``, ``_``, ``-``.
        validator: Judges the outputs of each trial; null: none does.
        provision: Fetches what builds need, with the host's network, once a round on the incumbent. Canonical
            bytes leave it out where there is none: plans frozen before the key keep their digest.
        build: Builds a checkout; null: nothing is built.
        smoke: Has to pass on a built candidate before it is measured; null: nothing has to.
        target_package: The package whose import must come from the measured checkout; null: not looked at.
        protected_paths: Globs that no lane may touch, beside every file that a command names.
        hidden_paths: Globs of hold-outs: only the validator ever sees them.
        environment: Exactly the variables that a candidate sees; ``{harness}`` and ``{hash_seed}`` are
            replaced.
        search_plan: Directions worth trying.
        search_plan_revisions: How entries changed, appended by ``close``.
        negative_memory: What failed, appended by ``close``.
    """

    format: Literal["roundkit-campaign/1"]
    campaign_id: Identifier
    repository: RepositoryRef
    metric: Metric
    benchmark: Benchmark
    validator: Command | None = None
    provision: Command | None = Field(default=None, exclude_if=is_missing)
    build: Command | None = None
    smoke: Command | None = None
    target_package: str | None = None
    protected_paths: Annotated[tuple[Glob, ...], Field(min_length=1)]
    hidden_paths: tuple[Glob, ...] = ()
    runtime: Runtime = Runtime()
    environment: dict[VariableName, str]
    limits: Limits
    intake: IntakeLimits
    test_plan: TestPlan
    search_plan: tuple[SearchPlanEntry, ...]
    search_plan_revisions: tuple[SearchPlanRevision, ...] = ()
    negative_memory: tuple[NegativeMemory, ...] = ()
    budget: CampaignBudget
    search_state: SearchState

    @model_validator(mode="after")
    def _unit_of_the_instrument(self) -> Self:
        instrument, metric = self.benchmark.instrument, self.metric
        unit = UNITS.get(instrument)
        if unit is not None and (metric.unit, metric.direction) != (unit, "lower"):
            wanted = f"write `unit: {unit}` and `direction: lower` under `metric`"
            raise ValueError(f"the instrument `{instrument}` gives {unit}, fewer are better: {wanted}")
        return self
