"""The prose of a round's report: headline, notes and footer, each a function from evidence."""

from __future__ import annotations

from pathlib import Path

from roundkit import __version__
from roundkit.audit import AuditReport, audit_round
from roundkit.core.errors import refuse
from roundkit.core.resources import near
from roundkit.core.text import counted
from roundkit.evidence import RoundEvidence
from roundkit.evidence.layout import INDEX
from roundkit.models.base import Provenance
from roundkit.report import round_words as words
from roundkit.report.facts import facts_list, page_footer, pair_cells
from roundkit.report.markup import escape, moment, percent
from roundkit.report.open_words import PROVISIONAL, paused_sentence
from roundkit.report.outcome import Outcome, conclude
from roundkit.report.views import Html
from roundkit.rounds.snapshot import OpenRound, RoundSource, is_round_directory, open_source

NO_MODEL: dict[Provenance, str] = {
    "scripted": "Scripted lanes: candidates prepared beforehand. This is not evidence about any model.",
    "stub": "Stub lanes: a stand-in answered for the provider. This is not evidence about any model.",
    "replay": "Replayed lanes: recorded work submitted again. No fresh evidence about any model.",
    "person": "A person's work: no model made these candidates.",
    "model": "",
}


def open_round(path: str | Path) -> RoundSource:
    """Open a round by a path that is absolute, or relative to this folder or one above it.

    Args:
        path: Its evidence folder, or its directory; a directory whose evidence was exported gives that.

    Raises:
        Refused: ``no-round``, or whatever is wrong with the folder.
    """
    found = near(path)
    if found is not None and (is_round_directory(found) or (found / INDEX).exists()):
        return open_source(found)
    name = Path(path).name
    raise refuse(
        "no-round",
        f"there is no folder {name!r}" if found is None else f"{name} holds nothing of a round",
        place="evidence",
        remedy=f"give the evidence that `roundkit close` printed, which holds {INDEX}, or a round's "
        "directory, which `roundkit prepare` made",
    )


def audited(source: RoundSource) -> AuditReport | None:
    """Return the audit of a round's evidence; None while it has none."""
    return None if isinstance(source, OpenRound) else audit_round(source.path)


def headline(source: RoundSource) -> Html:
    """What was decided, in a sentence and its figures; of an open round, that nothing is yet."""
    ledger, decided, why = source.ledger, words.decision(source), words.why(source)
    cells = pair_cells(_figures(source))
    notes = _notes(source)
    warned = "".join(f'<p class="rk-provenance">{escape(note)}</p>' for note in notes)
    when = (
        f"open, as of {moment(source.as_of)}"
        if isinstance(source, OpenRound)
        else f"closed {moment(source.ledger.closed_utc)}"
    )
    return Html(
        f'<header class="rk-head"><p class="rk-eyebrow">Round {escape(ledger.round_id)} of campaign '
        f"{escape(ledger.campaign_id)}, {when}</p>"
        f"<h1>{escape(decided)}</h1>{warned}"
        f'<p class="rk-lead">{escape(why)}</p><dl class="rk-figures">{cells}</dl>'
        f'<p class="rk-statement">{escape(ledger.statement)}</p></header>',
        "\n".join([decided, why, *notes, ledger.statement]),
    )


def _figures(source: RoundSource) -> tuple[tuple[str, str], ...]:
    ledger = source.ledger
    passed = sum(ticket.verdict is not None and ticket.verdict.verdict == "pass" for ticket in ledger.tickets)
    counts = (
        ("lanes", str(len(ledger.lanes))),
        ("tickets", str(len(ledger.tickets))),
        ("passed alone", str(passed)),
    )
    if isinstance(source, OpenRound):
        waiting = sum(ticket.state in {"queued", "measuring"} for ticket in ledger.tickets)
        return (("gain", "not known yet"), *counts, ("waiting", str(waiting)))
    gain = percent(ledger.gain) if ledger.gain is not None else "none"
    return (("gain", gain), *counts, ("in the new incumbent", str(len(words.kept_lanes(source)))))


def _notes(source: RoundSource) -> list[str]:
    """Return what a reader has to know first: provisional, paused, made by whom, and what is left out."""
    open_ones = (
        [PROVISIONAL, *filter(None, [paused_sentence(source)])] if isinstance(source, OpenRound) else []
    )
    made = [NO_MODEL[kind] for kind in words.provenances(source) if NO_MODEL[kind]]
    left_out = [words.INSTRUCTIONS] if source.run_spec.benchmark.instrument == "instructions" else []
    return [*open_ones, *made, *left_out]


def rerun_note(source: RoundSource) -> Html:
    """What the rerun said, in words."""
    text = words.rerun_sentence(source)
    return Html(f"<p>{escape(text)}</p>", text)


def samples_note(source: RoundSource) -> Html:
    """Whose raw samples are shown, and where the others are."""
    text = words.samples_sentence(source)
    return Html(f"<p>{escape(text)}</p>", text)


def measurement_notes(source: RoundSource) -> Html:
    """How the figures were measured, and what could be forged."""
    rows = words.protocol(source)
    facts = facts_list(rows)
    warned = words.warnings(source.run_spec)
    labels = "".join(f'<p class="rk-provenance">{escape(warning)}</p>' for warning in warned)
    return Html(f"{labels}{facts.markup}", "\n".join([*warned, facts.text]))


def footer(source: RoundSource, audit: AuditReport | None) -> Html:
    """Digests, versions, the result of the audit, and the command that repeats it."""
    rows = _open_footer(source) if isinstance(source, OpenRound) else _closed_footer(source, audit)
    return page_footer(rows, audit.failures if audit is not None else ())


def _closed_footer(source: RoundEvidence, audit: AuditReport | None) -> tuple[tuple[str, str], ...]:
    ledger, index = source.ledger, source.index
    place = f"evidence/{ledger.campaign_id}/rounds/{ledger.round_id}"
    return (
        ("round plan, SHA-256", source.round_digest),
        ("evidence index, SHA-256", source.digest),
        ("previous round's index", index.previous or "none: the campaign's first round"),
        ("incumbent I0", ledger.incumbent),
        ("exported by", f"roundkit {index.tool_version}"),
        ("reported by", f"roundkit {__version__}"),
        ("audit", audit_result(audit)),
        ("recompute with", f"roundkit audit {place} --expect {source.digest}"),
    )


def _open_footer(source: OpenRound) -> tuple[tuple[str, str], ...]:
    return (
        ("round plan, SHA-256", source.round_digest),
        ("evidence", "none before the round is closed: nobody can recompute this page"),
        ("incumbent I0", source.ledger.incumbent),
        ("reported by", f"roundkit {__version__}"),
        ("close it with", "roundkit close ROUND_DIR"),
    )


def audit_result(audit: AuditReport | None) -> str:
    """Return the result of an audit in a few words."""
    if audit is None:
        return "not audited"
    checks = counted(len(audit.checks), "check")
    return f"{checks}, all passed" if audit.passed else f"{len(audit.failures)} of {checks} FAILED"


def round_verdict(source: RoundSource, audit: AuditReport | None) -> Outcome:
    """Return the verdict that a round's notebook ends with: failed where its evidence does not agree."""
    done = audit is None or audit.passed
    return conclude(done, words.page_title(source), words.audit_sentence(audit))
