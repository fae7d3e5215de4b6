"""The checks of a published cohort: what its own figures allow to recompute, and what they do not."""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.audit.findings import Check, Disagreement, conclude
from roundkit.models.pilot_cohort import Cohort
from roundkit.models.pilot_published import PublishedCohort
from roundkit.rules.pilot_eligibility import ITEMS
from roundkit.rules.pilot_summary import Totals, totals


def check_published(cohort: Cohort) -> list[Check]:
    """Check a published cohort.

    Raises:
        ValueError: the cohort was not published but run here.
    """
    source = cohort.published
    if source is None:
        raise ValueError("this cohort was run here; it is audited from its evidence")
    counts = totals(cohort)
    calls = f"{counts.calls.value:,} calls of which {counts.failed_calls.value:,} failed"
    ends = ", ".join(f"{count} {name}" for name, count in counts.processes.items())
    return [
        *conclude("tuples", _matrix(source), f"{source.expected} tuples, each exactly once; {ends}"),
        *conclude("figures", _figures(source), f"{calls}; {counts.accepted} of {counts.expected} accepted"),
        *conclude("eligibility", _eligibility(source), _eligible(counts)),
        *(Check("not recorded", True, "", f"{entry.what}: {entry.reason}") for entry in source.not_recorded),
        Check("cannot be recomputed", True, "", _UNCHECKED),
    ]


def _eligible(counts: Totals) -> str:
    return f"{counts.eligible} of {counts.expected} observations are eligible"


_UNCHECKED = (
    "outcomes of processes and checks, calls, times and tokens are taken from the source; wire, candidates "
    "and records of the trials are not in this folder"
)


def _matrix(source: PublishedCohort) -> Iterator[Disagreement]:
    wanted = {
        f"{task}.{variant}.{repetition}"
        for task in source.tasks
        for variant in source.variants
        for repetition in range(1, source.repetitions + 1)
    }
    names = [row.tuple_id for row in source.tuples]
    for name in sorted(wanted - set(names)):
        yield Disagreement(name, "[missing] the matrix expects it")
    for name in sorted(set(names) - wanted):
        yield Disagreement(name, "[extra] the matrix does not expect it")
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Disagreement(name, f"[duplicate] it is there {names.count(name)} times")
    if len(wanted) != source.expected:
        yield Disagreement("expected", f"is {source.expected}, the matrix has {len(wanted)}")
    if [row.order for row in source.tuples] != list(range(1, len(source.tuples) + 1)):
        yield Disagreement("order", "is not numbered from 1 without a gap")


def _figures(source: PublishedCohort) -> Iterator[Disagreement]:
    checks: dict[str, set[str]] = {}
    for row in source.tuples:
        if row.failed_calls > row.calls:
            yield Disagreement(row.tuple_id, f"{row.failed_calls} of {row.calls} calls failed")
        if (row.process == "timeout") != row.tokens_partial:
            yield Disagreement(
                row.tuple_id, "usage in flight is unknown of ended processes, and of no others"
            )
        if checks.setdefault(row.task, set(row.checks)) != set(row.checks):
            yield Disagreement(row.tuple_id, "other checks than the task's other tuples")


def _eligibility(source: PublishedCohort) -> Iterator[Disagreement]:
    named = {entry.item for entry in source.not_recorded}
    for item in ITEMS:
        if item not in named:
            yield Disagreement(item, "nothing says why it is not recorded")
