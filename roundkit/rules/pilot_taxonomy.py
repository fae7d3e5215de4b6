"""A cohort's failures by class: what evidence decides by itself, beside what a person found in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roundkit.core.canonical import digest_bytes
from roundkit.models.pilot_cohort import Cohort, Observation
from roundkit.models.pilot_findings import AuthoredFinding, FailureClass, Finding
from roundkit.rules.pilot_causes import PUBLISHED_FILE, RULES, Seen

CLASS_WORDS: dict[FailureClass, str] = {
    "language-limit": "language or profile limit",
    "incorrect-proposal": "incorrect proposal",
    "discovery": "discovery",
    "stale-recovery": "stale recovery",
    "runtime-defect": "runtime defect",
    "measurement-infrastructure": "measurement or infrastructure",
    "human-intervention": "human intervention",
}
"""What each class is called in a report."""


def findings(cohort: Cohort, authored: Sequence[AuthoredFinding] = ()) -> tuple[Finding, ...]:
    """Return every finding, ranked: a person's in their order, then what evidence decides, most tuples first.

    Args:
        cohort: The cohort.
        authored: What a person wrote, checked against the folder before.
    """
    found = [*_authored(authored), *_published(cohort)]
    derived = [_finding(cohort, seen) for rule in RULES for seen in rule(cohort)]
    derived.sort(key=lambda each: (-len(each.tuples), -each.weight, each.cause))
    return tuple(
        each.model_copy(update={"rank": rank}) for rank, each in enumerate([*found, *derived], start=1)
    )


def _authored(authored: Sequence[AuthoredFinding]) -> Iterator[Finding]:
    for each in authored:
        yield Finding(
            rank=1,
            failure_class=each.failure_class,
            cause="authored",
            tuples=(each.tuple_id,),
            tuple_id=each.tuple_id,
            artifact=each.artifact,
            sha256=each.sha256,
            weight=1,
            sentence=each.sentence,
            reproduction=each.reproduction,
            maps_to=each.maps_to,
        )


def _published(cohort: Cohort) -> Iterator[Finding]:
    for each in cohort.published.findings if cohort.published is not None else ():
        yield Finding(
            rank=1,
            failure_class=each.failure_class,
            cause="published",
            tuples=() if each.tuple_id is None else (each.tuple_id,),
            tuple_id=each.tuple_id,
            artifact=PUBLISHED_FILE,
            sha256=cohort.digest,
            weight=1,
            sentence=each.sentence,
            reproduction="none: the source keeps its artifacts",
            maps_to=each.maps_to,
        )


def _finding(cohort: Cohort, seen: Seen) -> Finding:
    cited, _ = max(seen.rows, key=lambda row: (row[1], -row[0].slot.order))
    artifact, sha256 = _cited(cohort, cited, seen.artifact)
    return Finding(
        rank=1,
        failure_class=seen.failure_class,
        cause=seen.cause,
        tuples=tuple(row.tuple_id for row, _ in seen.rows),
        tuple_id=cited.tuple_id,
        artifact=artifact,
        sha256=sha256,
        weight=sum(times for _, times in seen.rows),
        sentence=seen.sentence,
        reproduction=seen.reproduction.format(tuple=cited.tuple_id, artifact=artifact),
        maps_to=seen.maps_to,
    )


def _cited(cohort: Cohort, row: Observation, wanted: str) -> tuple[str, str]:
    """Return the wanted file of a trial, or else its record, with its digest."""
    if row.folder is None or row.files is None:
        return PUBLISHED_FILE, cohort.digest
    for name in (wanted, "record.json"):
        data = row.files.get(name).data
        if data is not None:
            return f"{row.folder}/{name}", digest_bytes(data)
    return "plan.json", cohort.digest
