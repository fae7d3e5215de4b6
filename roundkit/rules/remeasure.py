"""When an experiment is done again, and when the queue waits for its owner first."""

from __future__ import annotations

from collections.abc import Sequence

from roundkit.models.experiment import ExperimentRecord
from roundkit.models.round_plan import Gates
from roundkit.models.verdict import VerdictRecord

INTERRUPTED = "interrupted"
"""Reason of an experiment that its owner stopped; it costs the ticket nothing."""

HOST_STATES = frozenset({"disk-full", "device-drift", "device-unqualified"})
"""Reasons that repeat until a person acts: the queue waits, and no ticket pays for them."""

_BROKEN = frozenset({"infrastructure", "baseline-broke"})


def is_measured_again(
    record: ExperimentRecord, verdict: VerdictRecord, earlier: Sequence[ExperimentRecord], gates: Gates
) -> bool:
    """Say whether a subject goes back to the queue after an experiment.

    Args:
        record: The experiment that just ended.
        verdict: What it says.
        earlier: The subject's finished experiments before it.
        gates: The plan's.
    """
    if _costs_nothing(record):
        return True
    if record.outcome in _BROKEN:
        return _broken(earlier) < gates.remeasure_limit
    if record.outcome == "complete" and verdict.reason == "order":
        complete = [old for old in earlier if old.outcome == "complete"]
        return len(complete) < gates.repeats_for_order
    return False


def is_checked_again(record: ExperimentRecord, earlier: Sequence[ExperimentRecord], gates: Gates) -> bool:
    """Say whether an A/A experiment broke in a way that says nothing, and is simply done anew.

    Args:
        record: The A/A experiment that just ended.
        earlier: The finished experiments of the same check before it.
        gates: The plan's.
    """
    if record.outcome != "infrastructure" or record.reason in HOST_STATES:
        return False
    return record.reason == INTERRUPTED or _broken(earlier) < gates.remeasure_limit


def pause_reason(record: ExperimentRecord, *, again: bool) -> str | None:
    """Return why the queue pauses after a ticket's experiment, None where it goes on.

    Args:
        record: The experiment that just ended.
        again: Whether the ticket went back to the queue.
    """
    if record.outcome == "baseline-broke":
        return f"the baseline broke: {broke_words(record)}"
    if record.outcome != "infrastructure" or record.reason == INTERRUPTED:
        return None
    if record.reason in HOST_STATES:
        return broke_words(record)
    # What broke so often is no accident of one ticket; the next one must not pay for it too.
    return None if again else f"measuring {record.subject} broke again and again: {broke_words(record)}"


def broke_words(record: ExperimentRecord) -> str:
    """Return why an experiment broke: its code, and what is known about it."""
    return f"{record.reason}: {record.detail}" if record.detail else str(record.reason)


def _costs_nothing(record: ExperimentRecord) -> bool:
    return record.reason == INTERRUPTED or (
        record.outcome == "infrastructure" and record.reason in HOST_STATES
    )


def _broken(earlier: Sequence[ExperimentRecord]) -> int:
    return sum(old.outcome in _BROKEN and not _costs_nothing(old) for old in earlier)
