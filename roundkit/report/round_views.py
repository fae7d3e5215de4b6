"""The prose of a round's report: headline, notes and footer, each a function from evidence."""

from __future__ import annotations

from pathlib import Path

from roundkit import __version__
from roundkit.audit import AuditReport
from roundkit.core.errors import refuse
from roundkit.evidence import RoundEvidence, open_evidence
from roundkit.models.base import Provenance
from roundkit.report import round_words as words
from roundkit.report.markup import counted, escape, moment, percent
from roundkit.report.views import Heading, Html, Table

_NO_MODEL: dict[Provenance, str] = {
    "scripted": "Scripted lanes: candidates prepared beforehand. This is not evidence about any model.",
    "stub": "Stub lanes: a stand-in answered for the provider. This is not evidence about any model.",
    "replay": "Replayed lanes: recorded work submitted again. No fresh evidence about any model.",
    "person": "A person's work: no model made these candidates.",
    "model": "",
}


def open_round(path: str | Path) -> RoundEvidence:
    """Open evidence by a path that is absolute, or relative to this folder or one above it.

    Raises:
        Refused: ``no-evidence``, or whatever is wrong with the folder.
    """
    wanted = Path(path)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / wanted).is_dir():
            return open_evidence(folder / wanted)
    raise refuse(
        "no-evidence",
        f"there is no folder {wanted.name!r}",
        place="evidence",
        remedy="give the path of the folder that holds index.json",
    )


def headline(evidence: RoundEvidence) -> Html:
    """What was decided, in a sentence and its figures."""
    ledger = evidence.ledger
    decided, why = words.decision(evidence), words.why(evidence)
    passed = sum(ticket.verdict is not None and ticket.verdict.verdict == "pass" for ticket in ledger.tickets)
    figures = (
        ("gain", percent(ledger.gain) if ledger.gain is not None else "none"),
        ("lanes", str(len(ledger.lanes))),
        ("tickets", str(len(ledger.tickets))),
        ("passed alone", str(passed)),
        ("in the new incumbent", str(len(words.kept_lanes(evidence)))),
    )
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in figures)
    counted_ones = evidence.run_spec.benchmark.instrument == "instructions"
    left_out = f'<p class="rk-provenance">{escape(words.INSTRUCTIONS)}</p>' if counted_ones else ""
    return Html(
        f'<header class="rk-head"><p class="rk-eyebrow">Round {escape(ledger.round_id)} of campaign '
        f"{escape(ledger.campaign_id)}, closed {moment(ledger.closed_utc)}</p>"
        f"<h1>{escape(decided)}</h1>{_provenance(evidence)}"
        f'<p class="rk-lead">{escape(why)}</p><dl class="rk-figures">{cells}</dl>{left_out}'
        f'<p class="rk-statement">{escape(ledger.statement)}</p></header>',
        "\n".join([decided, why, *([words.INSTRUCTIONS] if counted_ones else []), ledger.statement]),
    )


def _provenance(evidence: RoundEvidence) -> str:
    notes = [_NO_MODEL[kind] for kind in words.provenances(evidence) if _NO_MODEL[kind]]
    return "".join(f'<p class="rk-provenance">{escape(note)}</p>' for note in notes)


def rerun_note(evidence: RoundEvidence) -> Html:
    """What the rerun said, in words."""
    text = words.rerun_sentence(evidence)
    return Html(f"<p>{escape(text)}</p>", text)


def measurement_notes(evidence: RoundEvidence) -> Html:
    """How the figures were measured, and what could be forged."""
    rows = words.protocol(evidence)
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in rows)
    warned = words.warnings(evidence.run_spec)
    labels = "".join(f'<p class="rk-provenance">{escape(warning)}</p>' for warning in warned)
    text = "\n".join([*warned, *(f"{name}: {value}" for name, value in rows)])
    return Html(f'{labels}<dl class="rk-facts">{items}</dl>', text)


def footer(evidence: RoundEvidence, audit: AuditReport) -> Html:
    """Digests, versions, the result of the audit, and the command that repeats it."""
    ledger, index = evidence.ledger, evidence.index
    result = (
        f"{counted(len(audit.checks), 'check')}, all passed"
        if audit.passed
        else f"{len(audit.failures)} of {counted(len(audit.checks), 'check')} FAILED"
    )
    place = f"evidence/{ledger.campaign_id}/rounds/{ledger.round_id}"
    rows = (
        ("round plan, SHA-256", evidence.round_digest),
        ("evidence index, SHA-256", evidence.digest),
        ("previous round's index", index.previous or "none: the campaign's first round"),
        ("incumbent I0", ledger.incumbent),
        ("exported by", f"roundkit {index.tool_version}"),
        ("reported by", f"roundkit {__version__}"),
        ("audit", result),
        ("recompute with", f"roundkit audit {place} --expect {evidence.digest}"),
    )
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd><code>{escape(value)}</code></dd></div>" for name, value in rows
    )
    failures = Table(
        "Checks that failed",
        (Heading("check"), Heading("where", "code"), Heading("detail", "prose")),
        tuple((check.name, check.where, check.detail) for check in audit.failures),
    )
    more = failures.to_html() if audit.failures else ""
    text = "\n".join(f"{name}: {value}" for name, value in rows)
    return Html(f'{more}<footer class="rk-foot"><dl class="rk-facts">{items}</dl></footer>', text)
