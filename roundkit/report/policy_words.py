"""A policy pilot in words: its headline, its notes, and what it cannot show."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from statistics import median

from roundkit.core.text import counted
from roundkit.models.policy_run import PolicyRunRecord
from roundkit.report.markup import number, percent
from roundkit.report.policy_source import PolicySource
from roundkit.report.round_views import NO_MODEL
from roundkit.rules.policy_decision import equal_arms_say_faster, time_of

LABEL = "workflow-policy comparison"
STATEMENT = (
    "This pilot compares two ways of running a campaign, on one task, with one harness and one model. It "
    "does not show that the gains carry over to other programs, that one harness is better than another, or "
    "that the final program passes acceptance. Agents of S see what earlier lanes made and agents of P do "
    "not, so that it is no measurement of concurrency alone; and S keeps the frozen order, where a real "
    "campaign of one lane after the other might choose its next direction by the last result. A few runs can "
    "show a large and steady difference, or that there is none; three of them cannot estimate a small one. "
    "Where tickets mostly wait for devices, add device sets before lanes."
)
QUEUE_NOTE = (
    "Each round's candidates, measured again on a virtual clock by the times that their measurements took, "
    "all of them there at the start and no agent in between. It bounds the term of measurement and is "
    "reported as that only: agents would have written other candidates after other verdicts."
)
_TITLES = {
    "faster": "Rounds of several lanes were faster",
    "slower": "Rounds of several lanes were slower",
    "not distinguishable": "The two policies are not distinguishable",
}


def title(source: PolicySource) -> str:
    """Return what was decided, in one line."""
    if source.decision is None:
        done = len(source.records)
        return f"Nothing is decided yet: {done} of {counted(len(source.plan.schedule), 'run')} made"
    return _TITLES[source.decision.decision]


def why(source: PolicySource) -> str:
    """Return the conditions of the rule with their figures."""
    if source.decision is None:
        return "The rule is applied once every slot of the frozen order is used."
    reasons = [f"{reason[0].upper()}{reason[1:]}." for reason in source.decision.reasons]
    return " ".join(reasons)


def notes(source: PolicySource) -> list[str]:
    """Return what a reader has to know first: by whom the candidates were made, and which runs broke."""
    kinds = sorted({kind for record in source.records for kind in record.provenances})
    made = [NO_MODEL[kind] for kind in kinds if NO_MODEL[kind]]
    broken = [record for record in source.records if record.process != "completed"]
    told = [
        f"{counted(len(broken), 'run')} broke and {'is' if len(broken) == 1 else 'are'} kept as "
        f"{'it is' if len(broken) == 1 else 'they are'}: {', '.join(record.run_id for record in broken)}."
    ]
    return [*made, *(told if broken else [])]


def odds(source: PolicySource) -> str:
    """Return how often equal arms would be called faster, in words."""
    pairs = source.plan.repetitions
    return (
        f"Two equal arms would be called faster in at most {percent(equal_arms_say_faster(pairs))} of pilots "
        f"with {pairs} pairs."
    )


def median_time(records: Sequence[PolicyRunRecord]) -> str:
    """Return an arm's median time to the target, censored as later than any."""
    middle = median(_ordered(records)) if _ordered(records) else None
    return "none" if middle is None else "censored" if middle == inf else f"{number(middle)} s"


def median_gain(records: Sequence[PolicyRunRecord]) -> str:
    """Return an arm's median final gain."""
    known = [record.final_gain for record in records if record.final_gain is not None]
    return percent(median(known)) if known else "none"


def times(records: Sequence[PolicyRunRecord]) -> str:
    """Return an arm's times to the target: median and range, censored as later than any."""
    ordered = _ordered(records)
    if not ordered or ordered[0] == inf:
        return f"none reached it; {len(ordered)} censored" if ordered else "none"
    high = "censored" if ordered[-1] == inf else f"{number(ordered[-1])} s"
    return f"{median_time(records)} ({number(ordered[0])} s to {high})"


def _ordered(records: Sequence[PolicyRunRecord]) -> list[float]:
    times = (time_of(record.target_s, censored=record.censored) for record in records)
    return sorted(time for time in times if time is not None)


def spread(values: Sequence[float | int | None], unit: str = "") -> str:
    """Return median and range of what is known, and how many values are not."""
    known = [value for value in values if value is not None]
    if not known:
        return "unknown"
    left_out = len(values) - len(known)
    shown = f"{number(median(known))} ({number(min(known))} to {number(max(known))}){unit}"
    return f"{shown}; unknown for {left_out}" if left_out else shown


def gains(records: Sequence[PolicyRunRecord]) -> str:
    """Return median and range of final gains."""
    return shares([record.final_gain for record in records])


def shares(values: Sequence[float | None]) -> str:
    """Return median and range of fractions that are known, as per cent."""
    known = [value for value in values if value is not None]
    if not known:
        return "none"
    return f"{percent(median(known))} ({percent(min(known))} to {percent(max(known))})"
