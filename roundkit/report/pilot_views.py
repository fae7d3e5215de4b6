"""The prose of a pilot's report: headline, the comparison or why there is none, how it was frozen, footer."""

from __future__ import annotations

from pathlib import Path

from roundkit import __version__
from roundkit.audit import AuditReport, PilotSource, audit_pilot
from roundkit.audit import open_pilot as open_folder
from roundkit.audit.pilot_checks import is_pending
from roundkit.core.text import counted
from roundkit.models.pilot_cohort import Cohort
from roundkit.report import pilot_words as words
from roundkit.report.facts import facts_list, page_footer, pair_cells
from roundkit.report.markup import escape, moment
from roundkit.report.outcome import Outcome, conclude
from roundkit.report.pilot_folder import pilot_folder
from roundkit.report.views import Heading, Html, Table
from roundkit.rules.pilot_summary import SMALL_PILOT, aggregates, totals, withheld

Rows = list[tuple[str, str]]


def open_pilot(path: str | Path) -> PilotSource:
    """Open a pilot by a path that is absolute, or relative to this folder or one above it.

    Raises:
        Refused: ``no-pilot``, or whatever is wrong with the folder.
    """
    return open_folder(pilot_folder(path, holds=("plan.json", "published.json")))


def pilot_audit(pilot: PilotSource) -> AuditReport:
    """Return the audit of a pilot's folder."""
    return audit_pilot(pilot.path)


def pilot_headline(pilot: PilotSource) -> Html:
    """What came of the pilot, in a sentence and its figures."""
    cohort = pilot.cohort
    heading, lead, notes = words.title(cohort), words.lead(cohort), words.notes(cohort)
    cells = pair_cells(_figures(cohort))
    warned = "".join(f'<p class="rk-provenance">{escape(note)}</p>' for note in notes)
    text = "\n".join([heading, lead, *notes, *(f"{name}: {value}" for name, value in _figures(cohort))])
    return Html(
        f'<header class="rk-head"><p class="rk-eyebrow">Paired pilot {escape(cohort.pilot_id)} of campaign '
        f"{escape(cohort.campaign_id)}</p><h1>{escape(heading)}</h1>{warned}"
        f'<p class="rk-lead">{escape(lead)}</p><dl class="rk-figures">{cells}</dl>'
        f'<p class="rk-statement">{escape(cohort.question)}</p>'
        f'<p class="rk-statement">{escape(SMALL_PILOT)}</p></header>',
        f"{text}\n{SMALL_PILOT}",
    )


def pilot_comparison(pilot: PilotSource) -> Table | Html:
    """Variants over eligible observations, or why that is withheld."""
    cohort = pilot.cohort
    why = withheld(cohort)
    if why is not None:
        text = f"Withheld: {why}. The tables below describe every tuple, and compare nothing."
        return Html(f'<p class="rk-provenance">{escape(text)}</p>', text)
    nothing = "no eligible observation knows it"
    return Table(
        "Variants, over eligible observations only",
        (
            Heading("variant", "code"),
            Heading("eligible", "number"),
            Heading("of", "number"),
            Heading("fully accepted", "number"),
            Heading("median wall (s)", "number"),
            Heading("median calls", "number"),
            Heading("median presented (bytes)", "number"),
            Heading("median active review (s)", "number"),
        ),
        tuple(
            (
                each.variant,
                each.eligible,
                each.expected,
                each.accepted,
                words.seconds(each.wall_ms, nothing),
                words.whole(each.calls, nothing),
                words.whole(each.presented_bytes, nothing),
                words.seconds(each.active_ms, nothing),
            )
            for each in aggregates(cohort)
        ),
    )


def pilot_statement() -> Html:
    """What a pilot of this size cannot show; the same for every pilot."""
    return Html(f'<p class="rk-provenance">{escape(SMALL_PILOT)}</p>', SMALL_PILOT)


def pilot_facts(pilot: PilotSource) -> Html:
    """How the pilot was frozen; for a published one, where its figures come from."""
    rows = _frozen(pilot.cohort) if pilot.cohort.plan is not None else _source(pilot.cohort)
    return facts_list(rows)


def pilot_footer(pilot: PilotSource, audit: AuditReport) -> Html:
    """Digest, version, the result of the audit, and the command that repeats it."""
    cohort = pilot.cohort
    place = f"evidence/{cohort.campaign_id}/pilots/{cohort.pilot_id}"
    what = "published records" if cohort.published is not None else "pilot plan"
    rows = (
        (f"{what}, SHA-256", cohort.digest),
        ("reported by", f"roundkit {__version__}"),
        ("audit", words.audit_result(audit)),
        ("recompute with", f"roundkit pilot audit {place} --expect {cohort.digest}"),
    )
    return page_footer(rows, audit.failures)


def pilot_verdict(pilot: PilotSource, audit: AuditReport) -> Outcome:
    """Return the verdict that a pilot's notebook ends with: failed where its evidence does not agree.

    A pilot that is not finished has a report, marked provisional.
    """
    done = all(is_pending(check) for check in audit.failures)
    return conclude(done, words.title(pilot.cohort), f"Audit: {words.audit_result(audit)}.")


def _figures(cohort: Cohort) -> Rows:
    counts = totals(cohort)
    of = f"of {counts.expected}"
    return [
        ("tuples retained", f"{counts.retained} {of}"),
        ("fully accepted", f"{counts.accepted} {of}"),
        *((f"process {name}", f"{count} {of}") for name, count in counts.processes.items()),
        ("calls", f"{counts.calls.value or 0:,}"),
        ("failed calls", f"{counts.failed_calls.value or 0:,}"),
        ("eligible", f"{counts.eligible} {of}"),
        ("setup attempts", str(counts.setup)),
    ]


def _source(cohort: Cohort) -> Rows:
    source = cohort.published
    if source is None:
        return []
    return [
        ("source", source.source.description),
        ("published", source.source.published),
        ("measured by", source.source.measured_by),
        ("entered by", f"{source.source.entered_by}, {source.source.entered_utc:%Y-%m-%d}"),
        *(("read as", sentence) for sentence in source.source.read_as),
        ("limits", source.policy),
        *((f"not recorded: {entry.what}", entry.reason) for entry in source.not_recorded),
    ]


def _frozen(cohort: Cohort) -> Rows:
    plan = cohort.plan
    if plan is None:
        return []
    model, policy = plan.model, plan.policy
    decoding = ", ".join(f"{name} = {value}" for name, value in sorted(model.decoding.items()))
    authorized = plan.authorization
    return [
        ("frozen", moment(plan.frozen_utc)),
        ("repository", plan.repository_revision or "outside of a repository"),
        ("tasks", ", ".join(cohort.tasks)),
        ("variants", ", ".join(cohort.variants)),
        ("repetitions", str(plan.repetitions)),
        ("order", f"counterbalanced from seed {plan.seed}; schedule {plan.schedule_sha256}"),
        ("harness", model.harness),
        ("model", model.model or "none"),
        ("decoding", decoding or "nothing stated"),
        ("tokens are counted by", model.token_accounting),
        ("a trial may take", f"{policy.trial_s:g} s and {counted(policy.calls, 'call')}"),
        ("a call, a check may take", f"{policy.call_s:g} s, {policy.check_s:g} s"),
        ("runner", f"roundkit {plan.runner.version} on Python {plan.runner.python}, {plan.runner.machine}"),
        ("paid work authorized by", f"{authorized.by}" if authorized is not None else "nobody: none is done"),
    ]
