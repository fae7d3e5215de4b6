"""What went wrong in a pilot, by a closed list of classes: derived from evidence, or written by a person."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from roundkit.models.base import Count, Digest, Record

FailureClass = Literal[
    "language-limit",
    "incorrect-proposal",
    "discovery",
    "stale-recovery",
    "runtime-defect",
    "measurement-infrastructure",
    "human-intervention",
]
"""A limit of the language or of its profile; a proposal that is wrong; tools or files that an agent did not
find; a change in mid-trial that it did not recover from; a defect of what was tried or of the pilot's own
programs; measuring or its surroundings; and what a person did."""

Words = Annotated[str, Field(min_length=1, max_length=2000)]


class AuthoredFinding(Record):
    """One finding as a person writes it in ``findings.yaml``.

    Attributes:
        failure_class: One of the closed list of classes.
        tuple_id: The tuple that shows it, or a setup attempt's name.
        artifact: The file that shows it, relative to the pilot's folder.
        sha256: Its digest.
        sentence: What went wrong.
        reproduction: The command that shows it again.
        maps_to: The issue or the small follow-up that it leads to.
    """

    failure_class: FailureClass
    tuple_id: Words
    artifact: Words
    sha256: Digest
    sentence: Words
    reproduction: Words
    maps_to: Words


class FindingsFile(Record):
    """``findings.yaml`` in a pilot's folder; the order is its author's ranking.

    Attributes:
        findings: The most important one first.
    """

    format: Literal["roundkit-pilot-findings/1"]
    findings: tuple[AuthoredFinding, ...]


class Finding(Record):
    """One ranked finding.

    Attributes:
        rank: From 1, the one that most tuples show first.
        cause: A stable code for a derived one, ``authored`` for one that a person wrote, ``published`` for
            one that a published cohort's source reports.
        tuples: Tuples that show it.
        tuple_id: The tuple that is cited; null where the source names none.
        artifact: The cited file, relative to the pilot's folder.
        sha256: Its digest.
        weight: How many times it was seen, where that is counted; else how many tuples show it.
    """

    rank: Annotated[int, Field(ge=1)]
    failure_class: FailureClass
    cause: str
    tuples: tuple[str, ...]
    tuple_id: str | None
    artifact: str
    sha256: Digest
    weight: Count
    sentence: Words
    reproduction: Words
    maps_to: Words
