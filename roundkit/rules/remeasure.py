"""When an experiment is done again: what broke by no fault of the candidate, within the plan's limit."""

from __future__ import annotations

from collections.abc import Sequence

from roundkit.models.measurement import ExperimentRecord, VerdictRecord

INTERRUPTED = "interrupted"
"""Reason of an experiment that its owner stopped; it costs the ticket nothing."""

_ORDER_REPEATS = 1
_BROKEN = frozenset({"infrastructure", "baseline-broke"})


def is_measured_again(
    record: ExperimentRecord, verdict: VerdictRecord, earlier: Sequence[ExperimentRecord], limit: int
) -> bool:
    """Say whether a subject goes back to the queue after an experiment.

    Args:
        record: The experiment that just ended.
        verdict: What it says.
        earlier: The subject's finished experiments before it.
        limit: The plan's ``remeasure_limit``.
    """
    if record.reason == INTERRUPTED:
        return True
    broken = [old for old in earlier if old.outcome in _BROKEN and old.reason != INTERRUPTED]
    if record.outcome in _BROKEN:
        return len(broken) < limit
    if record.outcome == "complete" and verdict.reason == "order":
        complete = [old for old in earlier if old.outcome == "complete"]
        return len(complete) < _ORDER_REPEATS
    return False
