"""Figures of a cohort: descriptive ones over every tuple, comparative ones over eligible observations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from roundkit.models.pilot_cohort import Cohort, Observation, SetupAttempt

SMALL_PILOT = (
    "This pilot is small: a few tasks, one model configuration, a few repetitions. It describes what "
    "happened in these trials. It cannot show that a variant is better in general, on other tasks, with "
    "another model or another harness; it estimates no effect, and no figure here is a test of significance."
)
"""The fixed statement of every report on a paired pilot."""


@dataclass(frozen=True)
class Sum:
    """A sum over those that are known, of how many; null where none is.

    Attributes:
        value: The sum; null where nothing is known.
        known: How many values it adds up.
        of: How many there would be.
    """

    value: int | None
    known: int
    of: int


@dataclass(frozen=True)
class Totals:
    """Counts over the matrix.

    Attributes:
        expected: Tuples of the matrix.
        retained: Those that have a record.
        accepted: Those that all checks passed.
        eligible: Those that may enter comparative figures.
        calls: Tool calls.
        failed_calls: Those that failed.
        processes: How many agents ended in which way, in the order of the closed list.
        setup: Attempts outside of the matrix.
    """

    expected: int
    retained: int
    accepted: int
    eligible: int
    calls: Sum
    failed_calls: Sum
    processes: dict[str, int]
    setup: int


@dataclass(frozen=True)
class Costs:
    """What a group of attempts used, whatever came of them.

    Attributes:
        name: The group.
        attempts: How many.
        partial: Of them with usage in flight that nobody knows.
    """

    name: str
    attempts: int
    calls: Sum
    failed_calls: Sum
    wall_ms: Sum
    input_tokens: Sum
    cached_input_tokens: Sum
    output_tokens: Sum
    reasoning_tokens: Sum
    micro_usd: Sum
    partial: int


@dataclass(frozen=True)
class Cell:
    """One task with one variant, over its repetitions: descriptive, with raw denominators."""

    task: str
    variant: str
    expected: int
    recorded: int
    accepted: int
    calls: Sum
    failed_calls: Sum
    wall_ms: Sum
    input_tokens: Sum
    output_tokens: Sum
    presented_bytes: Sum
    validation_ms: Sum
    active_ms: Sum
    interventions: Sum
    recovery: dict[str, int]


@dataclass(frozen=True)
class Aggregate:
    """One variant over its eligible observations: medians, null where there is none."""

    variant: str
    eligible: int
    expected: int
    accepted: int
    wall_ms: float | None
    calls: float | None
    presented_bytes: float | None
    active_ms: float | None


def totals(cohort: Cohort) -> Totals:
    """Return the counts over a cohort's matrix."""
    every = cohort.observations
    return Totals(
        expected=len(every),
        retained=sum(each.state == "recorded" for each in every),
        accepted=sum(each.acceptance == "passed" for each in every),
        eligible=sum(each.eligibility.eligible for each in every),
        calls=_sum(each.calls for each in every),
        failed_calls=_sum(each.failed_calls for each in every),
        processes={
            name: count
            for name in ("completed", "timeout", "error", "aborted")
            if (count := sum(each.process == name for each in every))
        },
        setup=len(cohort.setup),
    )


def withheld(cohort: Cohort) -> str | None:
    """Say why comparative figures are withheld; null when they may be shown."""
    counts = totals(cohort)
    if counts.retained < counts.expected:
        return f"{counts.expected - counts.retained} of {counts.expected} tuples have no record yet"
    if counts.eligible == 0:
        return f"none of the {counts.expected} observations is eligible"
    return None


def aggregates(cohort: Cohort) -> tuple[Aggregate, ...]:
    """Return each variant's medians over eligible observations; none while they are withheld."""
    if withheld(cohort) is not None:
        return ()
    return tuple(_aggregate(cohort, variant) for variant in cohort.variants)


def cells(cohort: Cohort) -> tuple[Cell, ...]:
    """Return every task with every variant, paired: a task's variants stand next to each other."""
    return tuple(
        _cell(task, variant, _of(cohort, task=task, variant=variant))
        for task in cohort.tasks
        for variant in cohort.variants
    )


def costs(cohort: Cohort) -> tuple[Costs, ...]:
    """Return what attempts used: accepted ones, those that failed by how they ended, and setup."""
    groups: list[tuple[str, Sequence[Observation | SetupAttempt]]] = [
        ("accepted", [each for each in cohort.observations if each.acceptance == "passed"])
    ]
    for process in totals(cohort).processes:
        rows = [
            each for each in cohort.observations if each.process == process and each.acceptance != "passed"
        ]
        groups.append((f"not accepted, {process}", rows))
    groups.append(("setup, outside of the matrix", cohort.setup))
    return tuple(_costs(name, rows) for name, rows in groups if rows)


def check_counts(cohort: Cohort) -> dict[tuple[str, str, str], dict[str, int]]:
    """Return how often each check had which outcome, by task, check and variant."""
    found: dict[tuple[str, str, str], dict[str, int]] = {}
    for each in cohort.observations:
        for result in each.checks:
            counts = found.setdefault((each.slot.task, result.check, each.slot.variant), {})
            counts[result.outcome] = counts.get(result.outcome, 0) + 1
    return found


def _of(cohort: Cohort, *, task: str | None = None, variant: str | None = None) -> list[Observation]:
    return [
        each
        for each in cohort.observations
        if task in {None, each.slot.task} and variant in {None, each.slot.variant}
    ]


def _aggregate(cohort: Cohort, variant: str) -> Aggregate:
    every = _of(cohort, variant=variant)
    rows = [each for each in every if each.eligibility.eligible]
    return Aggregate(
        variant=variant,
        eligible=len(rows),
        expected=len(every),
        accepted=sum(each.acceptance == "passed" for each in rows),
        wall_ms=_median(each.wall_ms for each in rows),
        calls=_median(each.calls for each in rows),
        presented_bytes=_median(each.eligibility.presented_bytes for each in rows),
        active_ms=_median(each.eligibility.active_ms for each in rows),
    )


def _cell(task: str, variant: str, rows: list[Observation]) -> Cell:
    kinds = [each.eligibility.recovery or "unknown" for each in rows]
    return Cell(
        task=task,
        variant=variant,
        expected=len(rows),
        recorded=sum(each.state == "recorded" for each in rows),
        accepted=sum(each.acceptance == "passed" for each in rows),
        calls=_sum(each.calls for each in rows),
        failed_calls=_sum(each.failed_calls for each in rows),
        wall_ms=_sum(each.wall_ms for each in rows),
        input_tokens=_sum(each.tokens.input for each in rows),
        output_tokens=_sum(each.tokens.output for each in rows),
        presented_bytes=_sum(each.eligibility.presented_bytes for each in rows),
        validation_ms=_sum(each.validation_ms for each in rows),
        active_ms=_sum(each.eligibility.active_ms for each in rows),
        interventions=_sum(each.eligibility.interventions for each in rows),
        recovery={kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
    )


def _costs(name: str, rows: Sequence[Observation | SetupAttempt]) -> Costs:
    return Costs(
        name=name,
        attempts=len(rows),
        calls=_sum(each.calls for each in rows),
        failed_calls=_sum(each.failed_calls for each in rows),
        wall_ms=_sum(each.wall_ms for each in rows),
        input_tokens=_sum(each.tokens.input for each in rows),
        cached_input_tokens=_sum(each.tokens.cached_input for each in rows),
        output_tokens=_sum(each.tokens.output for each in rows),
        reasoning_tokens=_sum(each.tokens.reasoning for each in rows),
        micro_usd=_sum(each.micro_usd for each in rows),
        partial=sum(each.tokens.partial for each in rows),
    )


def _sum(values: Iterable[int | None]) -> Sum:
    every = list(values)
    known = [value for value in every if value is not None]
    return Sum(sum(known) if known else None, len(known), len(every))


def _median(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None
