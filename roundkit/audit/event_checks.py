"""What the log has to tell by the records, as often as it happened: rejections, requeues, pauses, resumes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from roundkit.audit.findings import Disagreement
from roundkit.audit.material import Material
from roundkit.models.experiment import ExperimentRecord
from roundkit.rules.remeasure import is_measured_again, pause_reason
from roundkit.rules.verdict import decide

_TOLD_BY = {
    "submission-rejected": ("lane", "entry", "cause"),
    "requeued": ("ticket", "reason"),
    "resumed": ("experiment",),
    "paused": ("experiment",),
}


def repeated_event_problems(material: Material) -> Iterator[Disagreement]:
    """Yield what the log leaves out of what the records show, and what it tells that no record shows.

    A pause may be anybody's, so one that no record shows is none.
    """
    for kind, wanted in _wanted(material).items():
        told = Counter(
            _words(*(event.fields.get(name) for name in _TOLD_BY[kind]))
            for event in material.evidence.events
            if event.kind == kind
        )
        for words in sorted(wanted - told):
            yield Disagreement("events.jsonl", f"has no {kind} {words}, which the records show")
        for words in sorted(told - wanted) if kind != "paused" else ():
            yield Disagreement("events.jsonl", f"tells {kind} {words}, which no record shows")


def _wanted(material: Material) -> dict[str, Counter[str]]:
    ledger, repeated, pauses = material.ledger, Counter[str](), Counter[str]()
    for record in material.experiments.values():
        if record.purpose == "ticket":
            reason, again = _after(material, record)
            repeated.update([_words(record.subject, reason)] if again else [])
            pauses.update([record.experiment_id] if pause_reason(record, again=again) else [])
    pauses.update(check.experiment for check in ledger.aa_checks if not check.passed)
    return {
        "submission-rejected": Counter(
            _words(one.lane, one.entry, one.cause) for one in ledger.rejected_submissions
        ),
        "requeued": repeated,
        "resumed": Counter(check.experiment for check in ledger.aa_checks if check.resumes and check.passed),
        "paused": pauses,
    }


def _after(material: Material, record: ExperimentRecord) -> tuple[str, bool]:
    """Return the reason of an experiment's verdict, and whether its ticket was measured again."""
    verdict = decide(record, material.spec)
    earlier = [one for one in material.of_subject(record.subject) if one.attempt < record.attempt]
    return verdict.reason, is_measured_again(record, verdict, earlier, material.spec.gates)


def _words(*parts: object) -> str:
    return " ".join(map(str, parts))
