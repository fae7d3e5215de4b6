"""A paired pilot that others ran and published: its figures re-entered, with what they do not say."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from roundkit.models.base import Count, Identifier, Provenance, Record, UtcTime
from roundkit.models.pilot_findings import FailureClass
from roundkit.models.pilot_trial import CheckOutcome, EligibilityItem, ProcessOutcome

Words = Annotated[str, Field(min_length=1, max_length=2000)]


class Source(Record):
    """Where a published cohort's figures come from.

    Attributes:
        description: What was published, where and when, in a sentence.
        published: Day of publication, ``YYYY-MM-DD``.
        measured_by: Who measured.
        entered_by: Who entered the figures here.
        entered_utc: When.
        read_as: How words of the source became words of this project, one sentence each.
    """

    description: Words
    published: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    measured_by: Words
    entered_by: Words
    entered_utc: UtcTime
    read_as: tuple[Words, ...]


class NotRecorded(Record):
    """Something that the source does not say of any tuple, and why a reader would want it.

    Attributes:
        what: What is missing.
        item: The eligibility item that is missing for it; null where none is.
        reason: What the source says instead, or that it says nothing.
    """

    what: Words
    item: EligibilityItem | None
    reason: Words


class PublishedTuple(Record):
    """One tuple as published.

    Attributes:
        variant: The variant.
        process: How its agent ended, in this project's words.
        process_as_published: The source's own word.
        wall_ms: Wall time as published.
        calls: Tool calls.
        failed_calls: Those that failed.
        input_tokens: As reported, of completed steps.
        output_tokens: As reported, of completed steps.
        tokens_partial: Whether usage in flight is unknown, because the process was ended.
        checks: Each check's outcome.
    """

    order: Annotated[int, Field(ge=1)]
    task: Identifier
    variant: Identifier
    repetition: Annotated[int, Field(ge=1)]
    process: ProcessOutcome
    process_as_published: Words
    wall_ms: Count
    calls: Count
    failed_calls: Count
    input_tokens: Count | None
    output_tokens: Count | None
    tokens_partial: bool
    checks: dict[Identifier, CheckOutcome]

    @property
    def tuple_id(self) -> str:
        """Return the tuple's name."""
        return f"{self.task}.{self.variant}.{self.repetition}"


class PublishedSetup(Record):
    """One attempt outside of the matrix, as published: what it ran into."""

    name: Identifier
    detail: Words


class PublishedFinding(Record):
    """One thing that the source reports as having gone wrong, in this project's words.

    Attributes:
        failure_class: One of the closed list of classes.
        tuple_id: The tuple that shows it; null where the source names none.
        sentence: What went wrong.
        maps_to: The issue or follow-up that it led to.
    """

    failure_class: FailureClass
    tuple_id: str | None
    sentence: Words
    maps_to: Words


class PublishedCohort(Record):
    """``published.json``: a cohort that others ran. Nothing of it can be recomputed beyond its own sums.

    Attributes:
        provenance: What played the agents, as published.
        source: Where the figures come from.
        expected: Tuples of its matrix.
        tasks: Names of its tasks.
        variants: Names of its variants.
        policy: What is known of the limits, in a sentence.
        tuples: Its tuples, as published.
        setup: Attempts outside of the matrix.
        findings: What the source reports as having gone wrong.
        not_recorded: What the source does not have, never filled in.
    """

    format: Literal["roundkit-published-cohort/1"]
    pilot_id: Identifier
    campaign_id: Identifier
    question: Words
    provenance: Provenance
    source: Source
    expected: Annotated[int, Field(ge=1)]
    tasks: tuple[Identifier, ...]
    variants: tuple[Identifier, ...]
    repetitions: Annotated[int, Field(ge=1)]
    policy: Words
    tuples: tuple[PublishedTuple, ...]
    setup: tuple[PublishedSetup, ...]
    findings: tuple[PublishedFinding, ...]
    not_recorded: tuple[NotRecorded, ...]
