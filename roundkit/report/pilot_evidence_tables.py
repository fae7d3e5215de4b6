"""The tables of a pilot's report about its evidence: eligibility, checks, codes, audit, findings, setup."""

from __future__ import annotations

from collections import Counter

from roundkit.audit import AuditReport, PilotSource
from roundkit.report import pilot_words as words
from roundkit.report.views import Heading, Table, Value
from roundkit.rules.pilot_summary import check_counts
from roundkit.rules.pilot_taxonomy import CLASS_WORDS

_OUTCOMES = ("passed", "failed", "unavailable")


def eligibility_table(pilot: PilotSource) -> Table:
    """Every item that is not measured, with its exact reason, and the tuples that lack it for that."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in pilot.cohort.observations:
        for result in each.eligibility.items:
            if result.reason is not None:
                found.setdefault((result.item, result.reason), []).append(each.tuple_id)
    expected = len(pilot.cohort.observations)
    return Table(
        "Why observations are ineligible",
        (
            Heading("item"),
            Heading("reason", "prose"),
            Heading("tuples", "number"),
            Heading("of", "number"),
            Heading("which", "prose"),
        ),
        tuple(
            (item, reason, len(names), expected, "all" if len(names) == expected else ", ".join(names))
            for (item, reason), names in found.items()
        ),
        empty="Every observation has all four items.",
    )


def check_table(pilot: PilotSource) -> Table:
    """Each task's checks by variant."""
    return Table(
        "Checks of each task, by variant",
        (
            Heading("task", "code"),
            Heading("check", "code"),
            Heading("variant", "code"),
            *(Heading(outcome, "number") for outcome in _OUTCOMES),
        ),
        tuple(
            (task, check, variant, *(counts.get(outcome, 0) for outcome in _OUTCOMES))
            for (task, check, variant), counts in sorted(check_counts(pilot.cohort).items())
        ),
        empty="No candidate was checked.",
    )


def code_table(pilot: PilotSource) -> Table:
    """Calls by variant and by the gateway's own code."""
    counts = Counter(
        (each.slot.variant, call.tool, call.code)
        for each in pilot.cohort.observations
        for call in each.gateway
    )
    return Table(
        "Calls by what the gateway answered",
        (Heading("variant", "code"), Heading("tool", "code"), Heading("answer"), Heading("calls", "number")),
        tuple((*key, count) for key, count in sorted(counts.items())),
        empty="The calls themselves are not in this folder.",
    )


def framework_table(audit: AuditReport) -> Table:
    """What the audit recomputed, by family: whether the pilot itself worked, and nothing of its agents."""
    families = list(dict.fromkeys(check.name for check in audit.checks))
    rows: list[tuple[Value, ...]] = []
    for family in families:
        checks = [check for check in audit.checks if check.name == family]
        failed = [check for check in checks if not check.passed]
        shown = failed or checks
        detail = "\n".join(": ".join(filter(None, [check.where, check.detail])) for check in shown)
        rows.append((family, "failed" if failed else "passed", detail))
    return Table(
        "What the audit recomputed",
        (Heading("check"), Heading("result", "verdict"), Heading("detail", "prose")),
        tuple(rows),
    )


def finding_table(pilot: PilotSource) -> Table:
    """Every finding, ranked, with the file that shows it and the command that shows it again."""
    return Table(
        "Findings",
        (
            Heading("rank", "number"),
            Heading("class"),
            Heading("what went wrong", "prose"),
            Heading("tuples", "number"),
            Heading("cited tuple, file, SHA-256", "prose"),
            Heading("shown again by", "code"),
            Heading("leads to", "prose"),
        ),
        tuple(
            (
                each.rank,
                CLASS_WORDS[each.failure_class],
                each.sentence,
                len(each.tuples),
                "\n".join(filter(None, [each.tuple_id, each.artifact, f"{each.sha256[:16]}…"])),
                each.reproduction,
                each.maps_to,
            )
            for each in pilot.findings
        ),
        empty="Nothing went wrong that evidence shows.",
    )


def setup_table(pilot: PilotSource) -> Table:
    """Attempts outside of the matrix."""
    return Table(
        "Setup attempts, outside of the matrix",
        (
            Heading("attempt", "code"),
            Heading("process"),
            Heading("calls", "number"),
            Heading("wall (s)", "number"),
            Heading("detail", "prose"),
        ),
        tuple(
            (
                each.name,
                each.process or words.UNKNOWN,
                words.known(each.calls),
                words.UNKNOWN if each.wall_ms is None else words.seconds(each.wall_ms),
                each.detail,
            )
            for each in pilot.cohort.setup
        ),
        empty="No setup attempt was made.",
    )
