"""A policy pilot's report: headline, notes, tables and verdict, each a function from the pilot."""

from __future__ import annotations

from roundkit import __version__
from roundkit.report import policy_words as words
from roundkit.report.facts import page_footer, pair_cells
from roundkit.report.markup import escape, moment, percent
from roundkit.report.outcome import Outcome, conclude
from roundkit.report.policy_source import PolicySource, open_pilot
from roundkit.report.policy_tables import (
    arms_table,
    bounds_table,
    costs_table,
    interactions_table,
    pairs_table,
    places_table,
    queue_bound_table,
    rejected_table,
    rounds_table,
    runs_table,
)
from roundkit.report.round_words import audit_sentence
from roundkit.report.views import Html

__all__ = [
    "PolicySource",
    "arms_table",
    "bounds_table",
    "costs_table",
    "decision_note",
    "footer",
    "headline",
    "interactions_table",
    "open_pilot",
    "pairs_table",
    "places_table",
    "queue_bound_table",
    "queue_note",
    "rejected_table",
    "rounds_table",
    "runs_table",
    "statement",
    "verdict",
]


def headline(source: PolicySource) -> Html:
    """What was decided, in a sentence and its figures, and by whom the candidates were made."""
    plan, title, why, notes = source.plan, words.title(source), words.why(source), words.notes(source)
    cells = pair_cells(_figures(source))
    warned = "".join(f'<p class="rk-provenance">{escape(note)}</p>' for note in notes)
    return Html(
        f'<header class="rk-head"><p class="rk-eyebrow">Policy pilot {escape(plan.pilot_id)} of campaign '
        f"{escape(plan.campaign_id)}, a <em>{words.LABEL}</em>, frozen {moment(plan.frozen_utc)}</p>"
        f"<h1>{escape(title)}</h1>{warned}"
        f'<p class="rk-lead">{escape(plan.question)} {escape(why)}</p><dl class="rk-figures">{cells}</dl>'
        f'<p class="rk-statement">{escape(words.odds(source))}</p></header>',
        "\n".join([words.LABEL, title, *notes, plan.question, why]),
    )


def decision_note(source: PolicySource) -> Html:
    """The frozen rule, in words, with its figures."""
    plan = source.plan
    rule = (
        f"The target is a gain of {percent(plan.target_gain)}: {plan.fraction:g} times the reference gain of "
        f"{percent(plan.reference.gain)} ({plan.reference.source}). Faster: P reaches it before S in every "
        f"pair, the median ratio is under {plan.ratio_threshold:g}, and P's median final gain is not lower. "
        "Slower: the mirror image. Anything else: not distinguishable. A censored run is later than any "
        f"time; a pair with both censored has no first. {words.odds(source)}"
    )
    return Html(f"<p>{escape(rule)}</p>", rule)


def statement(_source: PolicySource) -> Html:
    """What such a pilot cannot show; the same in every report."""
    return Html(f'<p class="rk-statement">{escape(words.STATEMENT)}</p>', words.STATEMENT)


def queue_note(_source: PolicySource) -> Html:
    """What the measurement-queue bound is."""
    return Html(f"<p>{escape(words.QUEUE_NOTE)}</p>", words.QUEUE_NOTE)


def footer(source: PolicySource) -> Html:
    """Digests, versions, the result of the audit, and the command that repeats it."""
    audit = source.audit
    plan = source.plan
    digest = source.decision.digest() if source.decision else None
    command = f"roundkit pilot audit evidence/{plan.campaign_id}/pilots/{plan.pilot_id}"
    rows = (
        ("plan, SHA-256", plan.digest()),
        ("decision, SHA-256", digest or "nothing is decided yet"),
        ("order, SHA-256", plan.schedule_sha256),
        ("incumbent I0", plan.incumbent),
        ("run by", f"roundkit {plan.runner.version} on {plan.runner.machine}"),
        ("reported by", f"roundkit {__version__}"),
        ("audit", audit_sentence(audit)),
        ("recompute with", f"{command} --expect {digest}" if digest else command),
    )
    return page_footer(rows, audit.failures)


def verdict(source: PolicySource) -> Outcome:
    """Return the verdict that the notebook ends with: failed where the evidence does not agree.

    A pilot that goes on lacks runs; that alone makes no page wrong, since it says so.
    """
    failures = source.audit.failures
    if source.decision is None:
        failures = tuple(check for check in failures if not _is_left(check.name, check.detail))
    title = f"{words.title(source)}: policy pilot {source.plan.pilot_id}"
    return conclude(not failures, title, audit_sentence(source.audit))


def _is_left(name: str, detail: str) -> bool:
    return name == "matrix" and detail.endswith("is missing")


def _figures(source: PolicySource) -> tuple[tuple[str, str], ...]:
    decision = source.decision
    ratio = decision.median_ratio if decision else None
    return (
        ("decision", decision.decision if decision else "none yet"),
        ("median ratio P / S", "none" if ratio is None else f"{ratio:.3g}"),
        *((f"{arm} to the target, median", words.median_time(source.of(arm))) for arm in source.arms),
        *((f"final gain of {arm}, median", words.median_gain(source.of(arm))) for arm in source.arms),
    )
