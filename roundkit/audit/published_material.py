"""A published cohort as a cohort: its figures as entered, every observation ineligible with its reasons."""

from __future__ import annotations

from pathlib import Path

from roundkit.evidence.pilot_reader import PilotReader
from roundkit.models.pilot_cohort import Cohort, Observation, SetupAttempt, Tokens
from roundkit.models.pilot_plan import Slot
from roundkit.models.pilot_published import PublishedCohort, PublishedTuple
from roundkit.models.pilot_trial import CheckOutcome, CheckResult, Eligibility, ItemResult
from roundkit.rules.pilot_eligibility import ITEMS


def read_published(path: Path) -> Cohort:
    """Read a cohort that others published.

    Raises:
        EvidenceProblem: there is none that can be read.
    """
    return published_cohort(PilotReader(path).published())


def published_cohort(source: PublishedCohort) -> Cohort:
    """Return a published cohort in the form in which cohorts are reported; nothing is filled in."""
    reasons: dict[str | None, str] = {
        entry.item: f"missing: {entry.what}: {entry.reason}" for entry in source.not_recorded
    }
    return Cohort(
        pilot_id=source.pilot_id,
        campaign_id=source.campaign_id,
        question=source.question,
        provenance=source.provenance,
        digest=source.digest(),
        tasks=source.tasks,
        variants=source.variants,
        repetitions=source.repetitions,
        plan=None,
        published=source,
        observations=tuple(_observation(row, reasons) for row in source.tuples),
        setup=tuple(SetupAttempt(each.name, None, each.detail) for each in source.setup),
    )


def _observation(row: PublishedTuple, reasons: dict[str | None, str]) -> Observation:
    unsaid = "missing: the source does not say"
    return Observation(
        slot=Slot(order=row.order, task=row.task, variant=row.variant, repetition=row.repetition),
        state="recorded",
        folder=None,
        eligibility=Eligibility(
            tuple_id=row.tuple_id,
            items=tuple(ItemResult(item=item, reason=reasons.get(item, unsaid)) for item in ITEMS),
            presented_bytes=None,
            active_ms=None,
            recovery=None,
            interventions=None,
        ),
        process=row.process,
        process_word=row.process_as_published,
        wall_ms=row.wall_ms,
        calls=row.calls,
        failed_calls=row.failed_calls,
        acceptance=_together(row.checks),
        checks=tuple(
            CheckResult(
                check=name,
                outcome=outcome,
                reason="as published, without a reason" if outcome == "unavailable" else None,
            )
            for name, outcome in row.checks.items()
        ),
        tokens=Tokens(input=row.input_tokens, output=row.output_tokens, partial=row.tokens_partial),
    )


def _together(checks: dict[str, CheckOutcome]) -> CheckOutcome:
    outcomes = set(checks.values())
    return "failed" if "failed" in outcomes else "unavailable" if "unavailable" in outcomes else "passed"
