"""What evidence decides by itself about a cohort's failures: causes, each with the tuples that show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from roundkit.models.pilot_cohort import Cohort, Observation
from roundkit.models.pilot_findings import FailureClass
from roundkit.rules.pilot_answers import WRITE
from roundkit.rules.pilot_eligibility import ITEMS

PUBLISHED_FILE = "published.json"
_ANEW = "roundkit pilot run NEW_PILOT_DIR --only {tuple}, in a pilot prepared anew from the same file"
_NOT_FOUND = frozenset({"missing", "refused", "malformed"})
_NOT_RECOVERED = frozenset({"no-next-write", "wrong-digest", "malformed"})


@dataclass(frozen=True)
class Seen:
    """What one derived cause was seen in: observations with how often, the worst one cited."""

    cause: str
    failure_class: FailureClass
    rows: tuple[tuple[Observation, int], ...]
    artifact: str
    sentence: str
    reproduction: str
    maps_to: str


def _timeouts(cohort: Cohort) -> Iterator[Seen]:
    rows = tuple((row, 1) for row in cohort.observations if row.process == "timeout")
    if rows:
        yield Seen(
            "timeout", "measurement-infrastructure", rows, "record.json",
            f"Ended at the time limit: {_of(rows, cohort)}. What would have been left later is unknown.",
            _ANEW,
            "a newly frozen pilot with a time limit that its tasks fit",
        )  # fmt: skip


def _ended(cohort: Cohort) -> Iterator[Seen]:
    provider = [row for row in cohort.observations if row.agent and row.agent.end_reason == "provider-error"]
    if provider:
        yield Seen(
            "provider-error", "measurement-infrastructure", tuple((row, 1) for row in provider),
            "record.json",
            f"The provider failed: {_of(provider, cohort)}. The model was not replaced.",
            _ANEW,
            "the provider's limits, before another pilot is frozen",
        )  # fmt: skip
    known = {id(row) for row in provider}
    broke = [row for row in cohort.observations if row.process == "error" and id(row) not in known]
    if broke:
        yield Seen(
            "agent-error", "runtime-defect", tuple((row, 1) for row in broke), "record.json",
            f"The agent ended with an error of its own: {_of(broke, cohort)}. {_details(broke)}.",
            _ANEW,
            "the agent's program, or its boundary",
        )  # fmt: skip
    aborted = [row for row in cohort.observations if row.process == "aborted"]
    if aborted:
        yield Seen(
            "aborted", "measurement-infrastructure", tuple((row, 1) for row in aborted), "record.json",
            f"The trial was cut short: {_of(aborted, cohort)}. Its slot stays used.",
            "grep -o '\"detail\":\"[^\"]*\"' PILOT_DIR/{artifact}",
            "whatever ended the runner",
        )  # fmt: skip


def _of(rows: Sequence[object], cohort: Cohort) -> str:
    return f"{len(rows)} of {len(cohort.observations)} tuples"


def _details(rows: Sequence[Observation]) -> str:
    return "; ".join(dict.fromkeys(row.detail or "no detail" for row in rows))


def _discovery(cohort: Cohort) -> Iterator[Seen]:
    if cohort.published is not None:
        rows = tuple((row, row.failed_calls) for row in cohort.observations if row.failed_calls)
        failed, calls = sum(times for _, times in rows), sum(row.calls or 0 for row in cohort.observations)
        if rows:
            yield Seen(
                "failed-calls", "discovery", rows, PUBLISHED_FILE,
                f"{failed:,} of {calls:,} calls failed, {failed / calls:.0%}; the source does not say why "
                "each one did.",
                "roundkit pilot audit PILOT_DIR",
                "calls by the gateway's own codes, which pilots here record",
            )  # fmt: skip
        return
    rows = tuple(
        (row, times)
        for row in cohort.observations
        if (times := sum(call.code in _NOT_FOUND for call in row.gateway))
    )
    if not rows:
        return
    whole = Counter[str](call.code for row in cohort.observations for call in row.gateway)
    missed, calls = sum(times for _, times in rows), sum(whole.values())
    by_code = ", ".join(f"{whole[code]:,} {code}" for code in sorted(_NOT_FOUND) if whole[code])
    yield Seen(
        "calls-not-found", "discovery", rows, "calls.jsonl",
        f"{missed:,} of {calls:,} calls, {missed / calls:.0%}, asked for what is not there or not offered: "
        f"{by_code}.",
        "grep -E '\"code\":\"(missing|refused|malformed)\"' PILOT_DIR/{artifact}",
        "the variant's guide, or the one line that tells agents what a program does",
    )  # fmt: skip


def _recovery(cohort: Cohort) -> Iterator[Seen]:
    rows = tuple((row, 1) for row in cohort.observations if _unrecovered(cohort, row))
    if rows:
        kinds = Counter(row.eligibility.recovery for row, _ in rows)
        words = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), key=str))
        yield Seen(
            "not-recovered", "stale-recovery", rows, "drift.json",
            f"After the file had changed, its new content was never written over: {_of(rows, cohort)}. The "
            f"next write was: {words}.",
            "roundkit pilot audit PILOT_DIR", "how a stale answer tells an agent to read again",
        )  # fmt: skip


def _unrecovered(cohort: Cohort, row: Observation) -> bool:
    """Say whether nothing of a drifted file's new content was ever written over."""
    drift = cohort.plan.task(row.slot.task).task.drift if cohort.plan is not None else None
    if drift is None or row.eligibility.recovery != "rejected-stale-write":
        return row.eligibility.recovery in _NOT_RECOVERED
    writes = [call for call in row.gateway if call.tool == WRITE and call.path == drift.path]
    stale = [call.sequence for call in writes if call.code == "stale"]
    return not any(call.code == "ok" and call.sequence > min(stale, default=0) for call in writes)


def _proposals(cohort: Cohort) -> Iterator[Seen]:
    rows = [
        (row, _with(row, "failed"))
        for row in cohort.observations
        if row.process == "completed" and row.acceptance == "failed"
    ]
    if rows:
        checks = Counter(
            result.check for row, _ in rows for result in row.checks if result.outcome == "failed"
        )
        words = ", ".join(f"{name} {count}" for name, count in checks.most_common())
        yield Seen(
            "wrong-candidate", "incorrect-proposal", tuple(rows), "candidate.diff",
            f"The agent ended by itself with a candidate that checks fail: {_of(rows, cohort)}. {words}.",
            "roundkit pilot replay PILOT_DIR {tuple}", "the task's prompt, or nothing: it is the result",
        )  # fmt: skip


def _measuring(cohort: Cohort) -> Iterator[Seen]:
    unavailable = [(row, times) for row in cohort.observations if (times := _with(row, "unavailable"))]
    if unavailable:
        names = dict.fromkeys(
            result.check for row, _ in unavailable for result in row.checks if result.outcome == "unavailable"
        )
        yield Seen(
            "check-unavailable", "measurement-infrastructure", tuple(unavailable), "record.json",
            f"A check could not be made: {_of(unavailable, cohort)}. {', '.join(names)}.",
            "roundkit pilot replay PILOT_DIR {tuple}", "the check, or the machine that it needs",
        )  # fmt: skip
    cut = tuple(
        (row, len(row.record.truncated)) for row in cohort.observations if _truncated(row) and row.record
    )
    if cut:
        yield Seen(
            "truncated", "measurement-infrastructure", cut, "record.json",
            f"A log or a candidate was cut off, and is labelled so: {_of(cut, cohort)}.",
            "grep -o '\"truncated\":[^]]*' PILOT_DIR/{artifact}", "the policy's limits on output",
        )  # fmt: skip
    lacking = [(row, times) for row in cohort.observations if (times := _lacks(row))]
    if lacking:
        items = Counter(
            result.item for row, _ in lacking for result in row.eligibility.items if result.reason
        )
        words = ", ".join(f"{items[item]} {item}" for item in ITEMS if items[item])
        yield Seen(
            "ineligible", "measurement-infrastructure", tuple(lacking), "record.json",
            f"Ineligible: {_of(lacking, cohort)}. What is lacking: {words}.",
            "roundkit pilot audit PILOT_DIR", "measure it in the next pilot; nothing is filled in here",
        )  # fmt: skip


def _lacks(row: Observation) -> int:
    return sum(item.reason is not None for item in row.eligibility.items) * (row.state == "recorded")


def _with(row: Observation, outcome: str) -> int:
    return sum(result.outcome == outcome for result in row.checks)


def _truncated(row: Observation) -> bool:
    return row.record is not None and bool(row.record.truncated)


def _disagreements(cohort: Cohort) -> Iterator[Seen]:
    rows = tuple((row, 1) for row in cohort.observations if any(not replay.agrees for replay in row.replays))
    if rows:
        yield Seen(
            "replay-disagrees", "runtime-defect", rows, "record.json",
            f"Decided again from archived bytes, acceptance differs: {_of(rows, cohort)}.",
            "roundkit pilot replay PILOT_DIR {tuple}", "checks that depend on more than the candidate",
        )  # fmt: skip


def _people(cohort: Cohort) -> Iterator[Seen]:
    rows = tuple((row, len(row.interventions)) for row in cohort.observations if row.interventions)
    if rows:
        kinds = Counter(entry.kind for row, _ in rows for entry in row.interventions)
        words = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        yield Seen(
            "intervened", "human-intervention", rows, "interventions.jsonl",
            f"People intervened: {_of(rows, cohort)}. {words}.",
            "cat PILOT_DIR/{artifact}", "what the interventions were for",
        )  # fmt: skip


RULES: tuple[Callable[[Cohort], Iterator[Seen]], ...] = (
    _timeouts, _ended, _discovery, _recovery, _proposals, _measuring, _disagreements, _people,
)  # fmt: skip
