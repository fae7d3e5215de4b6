"""A saved comparison taken again: from its raw samples, its plan and its revealed secret."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from roundkit.core.canonical import digest_bytes
from roundkit.models.comparison import Comparison
from roundkit.models.measurement import ExperimentRecord, RunSpec, VerdictRecord
from roundkit.rules.looks import plan_looks
from roundkit.rules.schedule import plan_schedule
from roundkit.rules.verdict import decide


def recomputed(comparison: Comparison) -> VerdictRecord:
    """Return the verdict that the raw samples give; a candidate that was never built keeps its own."""
    if comparison.experiment is None:
        return comparison.verdict
    return decide(comparison.experiment, comparison.run_spec)


def disagreements(comparison: Comparison) -> tuple[str, ...]:
    """Return every way in which a comparison does not agree with itself; none for one as it was written."""
    return tuple(_disagreements(comparison))


def verdict_sentence(comparison: Comparison) -> str:
    """Return the verdict as one plain sentence, with what broke where something did."""
    verdict, record = comparison.verdict, comparison.experiment
    word = f"{verdict.verdict}: "
    sentence = verdict.sentence if verdict.sentence.startswith(word) else f"{word}{verdict.sentence}"
    if record is not None and record.outcome != "complete" and record.detail:
        sentence = f"{sentence}: {record.detail}"
    return sentence


def early_note(comparison: Comparison) -> str | None:
    """Return what is to be known of a gain that ended its experiment early; None where every pair was run."""
    verdict, most = comparison.verdict, comparison.run_spec.gates.ab_ba_pairs
    if not verdict.looks or verdict.looks[-1].stop != "gain" or verdict.pairs == most:
        return None
    return (
        f"It ended early, after {verdict.pairs} of at most {most} pairs, so the gain is biased upward;"
        " --all-pairs measures every pair."
    )


def _disagreements(comparison: Comparison) -> Iterator[str]:
    plan, spec = comparison.plan, comparison.run_spec
    secret = bytes.fromhex(comparison.secret)
    if digest_bytes(secret) != plan.secret_sha256:
        yield "the secret is not the one whose digest the plan holds"
    if plan.digest() != spec.round_digest:
        yield "the run specification belongs to another plan"
    last = () if comparison.experiment is None else (comparison.experiment,)
    for record in (*comparison.earlier, *last):
        yield from (f"{record.experiment_id}: {said}" for said in _record_problems(record, spec, secret))
    if recomputed(comparison) != comparison.verdict:
        yield "the raw samples give another verdict"


def _record_problems(record: ExperimentRecord, spec: RunSpec, secret: bytes) -> Iterator[str]:
    if record.run_spec_sha256 != spec.digest():
        yield "it ran under another run specification"
    pairs = spec.gates.ab_ba_pairs
    schedule = plan_schedule(secret, spec.round_digest, record.experiment_id, pairs)
    if tuple(trial.planned for trial in record.trials) != schedule[: len(record.trials)]:
        yield "its trials are not those that the secret gives"
    if record.look_plan != plan_looks(spec.gates, record.purpose):
        yield "its looks are not those that the gates give"
    for trial in record.trials:
        samples = trial.metrics.get(spec.metric.name, ())
        if trial.value is not None and (not samples or trial.value != median(samples)):
            yield f"the value of trial {trial.planned.index} is not the median of its samples"
    verdict = decide(record, spec)
    ended = verdict.looks[-1].stop is not None if verdict.looks else verdict.pairs == pairs
    if record.outcome == "complete" and not ended:
        yield f"it ended after {verdict.pairs} pairs, where nothing ends it"
