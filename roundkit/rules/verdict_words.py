"""What a verdict says in words: as it is recorded, and as it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roundkit.models.experiment import ExperimentRecord
from roundkit.models.instruments import INSTRUCTIONS_SAY_NOTHING
from roundkit.models.run_spec import RunSpec
from roundkit.models.verdict import VerdictRecord

if TYPE_CHECKING:
    # For annotations only: who shows a verdict that was recorded must not wait for numpy and scipy.
    from roundkit.stats.verdict import VerdictDecision

_NEEDED = "beyond {need:.2f} sigma"
_REASONS = {
    "gain": "a gain of {gain} over {pairs} pairs, " + _NEEDED + " and the line of {line}",
    "below-line": "a real gain of {gain}, under the line of {line}",
    "regression": "a loss of {loss} over {pairs} pairs, " + _NEEDED,
    "within-noise": "no difference " + _NEEDED + "; {pairs} pairs could have shown {mde}",
    "within-margin": "a difference of {gain} that is within the plan's margin",
    "futility": "stopped early: no gain was in reach; {pairs} pairs could have shown {mde}",
    "order": "the order of the trials mattered too much to tell the sides apart",
    "too-few-pairs": "only {pairs} pairs, too few for a verdict",
    "no-samples": "no valid pair",
}


def sentence_of(decision: VerdictDecision, spec: RunSpec) -> str:
    """Return what a verdict says, as it is recorded."""
    words = _REASONS.get(decision.reason)
    if words is None:
        return f"{decision.verdict}: {decision.reason}"
    sentence = words.format(
        gain=_percent(decision.gain),
        loss=_percent(None if decision.gain is None else -decision.gain),
        pairs=decision.n,
        need=decision.z_required,
        line=_percent(spec.gates.min_gain),
        mde=f"{_percent(decision.mde)} or more" if decision.mde is not None else "an unknown gain",
    )
    left_out = spec.benchmark.instrument == "instructions"
    return f"{sentence} ({INSTRUCTIONS_SAY_NOTHING})" if left_out else sentence


def with_evidence(verdict: VerdictRecord) -> str:
    """Return a verdict's recorded sentence with the evidence that was seen beside the one that was needed."""
    if verdict.z is None or verdict.z_required is None:
        return verdict.sentence
    needed = _NEEDED.format(need=verdict.z_required)
    return verdict.sentence.replace(needed, f"{needed} (z {verdict.z:.2f})", 1)


def in_words(verdict: VerdictRecord, record: ExperimentRecord | None) -> str:
    """Return a verdict as one plain sentence, with what broke where something did.

    The last part may be what a candidate printed: for the owner, who sees it with control characters shown.
    """
    word = f"{verdict.verdict}: "
    said = with_evidence(verdict)
    sentence = said if said.startswith(word) else f"{word}{said}"
    if record is not None and record.outcome != "complete" and record.detail:
        return f"{sentence}: {record.detail}"
    return sentence


def _percent(fraction: float | None) -> str:
    return "unknown" if fraction is None else f"{100 * fraction:.1f} %"
