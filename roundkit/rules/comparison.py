"""A saved comparison taken again: from its raw samples, its plan and its revealed secret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from roundkit.core.canonical import digest_bytes
from roundkit.models.comparison import Comparison, ComparisonPlan
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import CommandLog
from roundkit.models.run_spec import RunSpec
from roundkit.models.verdict import VerdictRecord
from roundkit.rules.disagreement import Disagreement, compare_run_specs, compare_verdicts, differs
from roundkit.rules.record_checks import record_problems
from roundkit.rules.remeasure import HOST_STATES, is_measured_again
from roundkit.rules.run_spec import comparison_run_spec
from roundkit.rules.verdict import decide, unmeasured
from roundkit.rules.verdict_words import in_words

SUBJECT = "compare"
"""What the experiments of a comparison are for; their purpose has the same name."""

_UNREADABLE = "unreadable"
"""How a step ended that succeeded and left what nobody can read."""


def recomputed(comparison: Comparison) -> VerdictRecord:
    """Return the verdict that the raw samples give; of a candidate that was never built, its commands."""
    if comparison.experiment is None:
        return unbuilt_verdict(comparison.builds[1], comparison.run_spec)
    return compared(comparison.experiment, comparison.run_spec, comparison.plan)


def compared(record: ExperimentRecord, spec: RunSpec, plan: ComparisonPlan) -> VerdictRecord:
    """Return the verdict on side B: what the samples give, but that no file is better or worse than itself.

    One comparison in some forty of a thing with itself looks like a gain; where that is known, it is none.

    Args:
        record: The experiment.
        spec: How it ran.
        plan: Which sides.
    """
    verdict = decide(record, spec)
    if not same_files(plan) or verdict.reason not in _DIFFERENCES or verdict.gain is None:
        return verdict
    sentence = (
        f"A and B have the same files, so that a difference of {100 * verdict.gain:+.1f} % over"
        f" {verdict.pairs} pairs is this machine's noise"
    )
    return verdict.model_copy(update={"verdict": "not-measured", "reason": _SAME_FILES, "sentence": sentence})


_SAME_FILES = "same-files"
_DIFFERENCES = frozenset({"gain", "below-line", "regression"})
"""Reasons that find a difference between the two sides."""


def unbuilt_verdict(logs: Sequence[CommandLog], spec: RunSpec) -> VerdictRecord:
    """Return the verdict on a candidate that was not measured, from how its build and probe ended.

    Args:
        logs: The steps that ran, the one that failed last.
        spec: How trials would have run.
    """
    failed = next((log for log in logs if not log.succeeded), None)
    if failed is None:
        return unmeasured("no-samples", spec)
    return unmeasured(f"candidate-{failed.step}", spec, verdict_name="fail")


def measures_again(records: Sequence[ExperimentRecord], spec: RunSpec) -> bool:
    """Say whether a comparison goes on after its last experiment.

    A person looks on: a baseline that breaks, or a host to be mended, is told at once.

    Args:
        records: All of its experiments so far, at least one.
        spec: How they ran.
    """
    *earlier, last = records
    if last.outcome == "baseline-broke" or last.reason in HOST_STATES:
        return False
    return is_measured_again(last, decide(last, spec), earlier, spec.gates)


def disagreements(comparison: Comparison) -> tuple[str, ...]:
    """Return every way in which a comparison does not agree with itself; none for one as it was written."""
    return tuple(f"{found.where}: {found.detail}" for found in _disagreements(comparison))


def same_files(plan: ComparisonPlan) -> bool:
    """Say whether both sides have the same files, so that there is nothing between them to measure."""
    return plan.baseline.files_sha256 == plan.candidate.files_sha256


def verdict_sentence(comparison: Comparison) -> str:
    """Return the verdict as one plain sentence, with what broke where something did."""
    sentence = in_words(comparison.verdict, comparison.experiment)
    if not same_files(comparison.plan) or comparison.verdict.reason == _SAME_FILES:
        return sentence
    return f"{sentence} (A and B have the same files)"


def early_note(comparison: Comparison) -> str | None:
    """Return what is to be known of a gain that ended its experiment early; None where every pair was run."""
    verdict, most = comparison.verdict, comparison.run_spec.gates.ab_ba_pairs
    if not verdict.looks or verdict.looks[-1].stop != "gain" or verdict.pairs == most:
        return None
    if same_files(comparison.plan):
        return None
    return (
        f"It ended early, after {verdict.pairs} of at most {most} pairs, so the gain is biased upward;"
        " --all-pairs measures every pair."
    )


def limit_hint(spec: RunSpec, reason: str | None) -> str | None:
    """Return how to give a command more time, where it ran out of it; None else."""
    if reason is None or not reason.endswith("-overrun"):
        return None
    return f"Each command may take {spec.benchmark.timeout_s:g} s; --timeout gives it more."


def _disagreements(comparison: Comparison) -> Iterator[Disagreement]:
    plan, spec = comparison.plan, comparison.run_spec
    yield from _plan_problems(comparison)
    yield from _build_problems(comparison)
    last = () if comparison.experiment is None else (comparison.experiment,)
    records = (*comparison.earlier, *last)
    if comparison.experiment is None and comparison.earlier:
        yield Disagreement("earlier", "has experiments, though the candidate was never built")
    for number, record in enumerate(records, 1):
        yield from _membership_problems(record, plan, attempt=number)
        yield from record_problems(
            record,
            spec,
            secret=bytes.fromhex(comparison.secret),
            owner=plan.comparison_id,
            device_sets=plan.device_sets,
        )
        if measures_again(records[:number], spec) != (number < len(records)):
            what = "had decided, and yet was measured again" if number < len(records) else "decided nothing"
            yield Disagreement(record.experiment_id, what)
    for before, after in pairwise(records):
        if after.started_utc < before.ended_utc:
            yield Disagreement(after.experiment_id, f"began before {before.experiment_id} had ended")
    yield from compare_verdicts("verdict", comparison.verdict, recomputed(comparison))


def _plan_problems(comparison: Comparison) -> Iterator[Disagreement]:
    plan = comparison.plan
    if digest_bytes(bytes.fromhex(comparison.secret)) != plan.secret_sha256:
        yield Disagreement("secret", "is not the one whose digest the plan holds")
    yield from compare_run_specs("run_spec", comparison.run_spec, comparison_run_spec(plan))
    if (plan.counting_tool is None) != (plan.benchmark.instrument != "instructions"):
        yield Disagreement("plan", f"{plan.benchmark.instrument} with the counting tool {plan.counting_tool}")


def _build_problems(comparison: Comparison) -> Iterator[Disagreement]:
    """Both sides ran the plan's steps in order; only a candidate that was not measured failed one."""
    plan = comparison.plan
    steps = (("build", plan.build), ("import-path", plan.target_package))
    wanted = [name for name, asked in steps if asked is not None]
    for side, logs in zip(("baseline", "candidate"), comparison.builds, strict=True):
        ran = [log.step for log in logs if log.end_reason != _UNREADABLE]
        failed = any(not log.succeeded for log in logs)
        may_fail = side == "candidate" and comparison.experiment is None
        complete = ran == wanted[: len(ran)] if failed else ran == wanted
        if not complete or any(not log.succeeded for log in logs[:-1]):
            yield differs(f"builds of the {side}", "steps", [log.step for log in logs], wanted)
        if failed and not may_fail:
            yield Disagreement(f"builds of the {side}", "failed, and yet it was measured")
        if may_fail and not failed:
            yield Disagreement(f"builds of the {side}", "all succeeded, and yet nothing was measured")


def _membership_problems(
    record: ExperimentRecord, plan: ComparisonPlan, *, attempt: int
) -> Iterator[Disagreement]:
    """Hold what an experiment says of itself against the plan that it belongs to."""
    for what, stands, wanted in (
        ("purpose", record.purpose, SUBJECT),
        ("subject", record.subject, SUBJECT),
        ("attempt", record.attempt, attempt),
        ("lane", record.lane, None),
        ("session_noise", record.session_noise, None),
        ("baseline", record.baseline.commit, plan.baseline.commit),
        ("baseline's tree", record.baseline.tree, plan.baseline.tree),
        ("candidate", record.candidate.commit, plan.candidate.commit),
        ("candidate's tree", record.candidate.tree, plan.candidate.tree),
    ):
        if stands != wanted:
            yield differs(record.experiment_id, what, stands, wanted)
    if record.started_utc < plan.planned_utc:
        yield Disagreement(record.experiment_id, "began before it was planned")
