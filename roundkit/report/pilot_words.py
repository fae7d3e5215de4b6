"""Words of a pilot's report: what a reader has to know first, and figures with what they are of."""

from __future__ import annotations

from roundkit.audit import AuditReport
from roundkit.core.text import counted
from roundkit.models.base import Provenance
from roundkit.models.pilot_cohort import Cohort
from roundkit.report.markup import joined, number
from roundkit.report.views import Missing, Value
from roundkit.rules.pilot_summary import Sum, totals, withheld

UNKNOWN = "unknown"
"""What stands where usage was not reported; never zero."""

_MS_IN_S = 1000
_USD_IN_MICRO = 1_000_000
NO_MODEL_AGENTS: dict[Provenance, str] = {
    "scripted": "Scripted agents: their calls were written beforehand. This is not evidence about any model.",
    "stub": "Stub agents: a stand-in answered for the provider. This is not evidence about any model.",
    "replay": "Replayed agents: recorded work, tried again. No fresh evidence about any model.",
    "person": "A person's work: no model made these candidates.",
    "model": "",
}


def title(cohort: Cohort) -> str:
    """Return the page's title: what was accepted, of how many."""
    counts = totals(cohort)
    return f"{counts.accepted} of {counts.expected} tuples fully accepted"


def lead(cohort: Cohort) -> str:
    """Return what the figures below may be used for."""
    counts, why = totals(cohort), withheld(cohort)
    ends = joined([f"{count} {name}" for name, count in counts.processes.items()]) or "none ended"
    calls = counts.calls.value or 0
    failed = counts.failed_calls.value or 0
    said = (
        f"{counted(counts.retained, 'tuple')} retained, processes: {ends}; {calls:,} calls, of which "
        f"{failed:,} failed; {counts.eligible} eligible."
    )
    if why is not None:
        return f"{said} Variants are not compared: {why}."
    return f"{said} Variants are compared over eligible observations only."


def notes(cohort: Cohort) -> list[str]:
    """Return what a reader has to know before any figure."""
    counts = totals(cohort)
    found = [NO_MODEL_AGENTS[cohort.provenance]]
    if cohort.published is not None:
        found.append(
            "Others measured and published these figures; they were entered here as records, and nothing "
            "that they do not say was filled in."
        )
    if counts.retained < counts.expected:
        found.append(
            f"Provisional: {counts.expected - counts.retained} of {counts.expected} tuples have no record."
        )
    return [note for note in found if note]


def audit_result(audit: AuditReport) -> str:
    """Return the result of an audit in a few words."""
    checks = counted(len(audit.checks), "check")
    return f"{checks}, all passed" if audit.passed else f"{len(audit.failures)} of {checks} FAILED"


def seconds(milliseconds: float | None, why: str = "not measured") -> Value:
    """Return milliseconds as seconds."""
    return Missing(why) if milliseconds is None else milliseconds / _MS_IN_S


def whole(value: float | None, why: str) -> Value:
    """Return a median; one that is a whole number as such."""
    if value is None:
        return Missing(why)
    return int(value) if value.is_integer() else value


def known(value: float | None) -> Value:
    """Return a figure, or that it is unknown."""
    return UNKNOWN if value is None else value


def summed(total: Sum, *, scale: int = 1) -> Value:
    """Return a sum; where not all of it is known, with of how many."""
    if total.value is None:
        return UNKNOWN
    value = total.value if scale == 1 else total.value / scale
    return value if total.known == total.of else f"{number(value)} ({total.known} of {total.of} known)"


def summed_s(total: Sum) -> Value:
    """Return a sum of milliseconds in seconds."""
    return summed(total, scale=_MS_IN_S)


def dollars(total: Sum) -> Value:
    """Return a sum of millionths of a dollar in dollars."""
    if total.value is None:
        return UNKNOWN
    text = f"{total.value / _USD_IN_MICRO:.4f}"
    return text if total.known == total.of else f"{text} ({total.known} of {total.of} known)"


def listed(counts: dict[str, int]) -> str:
    """Return counts by name as one text."""
    return ", ".join(f"{count} {name}" for name, count in counts.items())
