"""A reviewer's walk through one evidence folder: what was checked, and what follows from the raw bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from roundkit.audit import AuditReport, audit_round
from roundkit.core.errors import refuse
from roundkit.core.resources import near
from roundkit.core.text import counted
from roundkit.evidence import RoundEvidence, open_evidence
from roundkit.evidence.layout import INDEX
from roundkit.models.verdict import VerdictRecord
from roundkit.report.facts import facts_list, pair_cells
from roundkit.report.markup import escape
from roundkit.report.outcome import Outcome, conclude
from roundkit.report.round_words import audit_sentence
from roundkit.report.views import Heading, Html, Missing, Table, Value
from roundkit.rules.disagreement import compare_verdicts
from roundkit.rules.schedule import plan_schedule
from roundkit.rules.verdict import decide


@dataclass(frozen=True)
class Again:
    """Something that was computed anew, as a table, and how many rows of it do not agree."""

    table: Table
    differ: int

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        return self.table._repr_mimebundle_(**options)


def audit_near(evidence: str, *, repository: str = "", expect: str = "") -> AuditReport:
    """Audit the evidence at a path that is absolute, or relative to this folder or one above it.

    Args:
        evidence: The evidence folder.
        repository: The campaign's repository; empty to leave its commits alone.
        expect: The index digest as published elsewhere; empty for none.

    Raises:
        Refused: ``no-evidence``, ``no-repository``.
    """
    folder = near(evidence)
    if folder is None or not (folder / INDEX).exists():
        name = Path(evidence).name
        raise refuse(
            "no-evidence",
            f"there is no folder {name!r}" if folder is None else f"{name} holds no evidence of a round",
            place="evidence",
            remedy=f"give the folder that `roundkit close` printed, which holds {INDEX}",
        )
    repository_at = near(repository) if repository else None
    if repository and repository_at is None:
        raise refuse(
            "no-repository",
            f"there is no folder {Path(repository).name!r}",
            place="repository",
            remedy="give the campaign's repository, or a clone of it, or leave it empty",
        )
    return audit_round(folder, repository=repository_at, expect=expect or None)


def evidence_near(evidence: str) -> RoundEvidence:
    """Open the evidence at a path that is absolute, or relative to this folder or one above it.

    Raises:
        EvidenceProblem: it cannot be read at all.
    """
    return open_evidence(near(evidence) or Path(evidence))


def audit_headline(audit: AuditReport) -> Html:
    """Whether everything agrees, in a line and three figures."""
    failed = len(audit.failures)
    places = f"{counted(failed, 'place')} {'does' if failed == 1 else 'do'}"
    title = "Everything agrees" if audit.passed else f"{places} not agree"
    families = len({check.name for check in audit.checks})
    figures = (
        ("kinds of checks", str(families)),
        ("checks that agree", str(sum(check.passed for check in audit.checks))),
        ("checks that do not", str(failed)),
    )
    cells = pair_cells(figures)
    digest = audit.digest or "without a digest"
    said = escape(audit_sentence(audit))
    return Html(
        f'<header class="rk-head"><p class="rk-eyebrow">Evidence {escape(audit.subject)}, '
        f"<code>{escape(digest)}</code></p><h1>{escape(title)}</h1>"
        f'<p class="rk-lead">{said}.</p><dl class="rk-figures">{cells}</dl></header>',
        f"{title}: {audit_sentence(audit)}",
    )


def failed_checks(audit: AuditReport) -> Table:
    """Every place that does not agree; empty when all do."""
    return Table(
        "What does not agree",
        (Heading("check"), Heading("where", "code"), Heading("detail", "prose")),
        tuple((check.name, check.where, check.detail) for check in audit.failures),
        empty="Nothing: every check passed.",
    )


def checks_table(audit: AuditReport) -> Table:
    """Every check with its result."""
    return Table(
        "Checks",
        (Heading("check"), Heading("result"), Heading("where", "code"), Heading("detail", "prose")),
        tuple(
            (check.name, "passed" if check.passed else "FAILED", check.where or None, check.detail)
            for check in audit.checks
        ),
        empty="Nothing was checked.",
    )


def files_table(evidence: RoundEvidence) -> Table:
    """The folder's files by kind: how many, and how many bytes."""
    kinds: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for file in evidence.index.files:
        kind = f"{file.path.partition('/')[0]}/" if "/" in file.path else file.path
        kinds[kind] += 1
        sizes[kind] += file.size
    return Table(
        "Files of the index",
        (Heading("file or folder", "code"), Heading("files", "number"), Heading("bytes", "number")),
        tuple((kind, kinds[kind], sizes[kind]) for kind in sorted(kinds)),
    )


def index_facts(evidence: RoundEvidence) -> Html:
    """The digests that everything hangs on."""
    rows = (
        ("evidence index, SHA-256", evidence.digest),
        ("round plan, SHA-256", evidence.round_digest),
        ("previous round's index", evidence.index.previous or "none: the campaign's first round"),
        ("exported by", f"roundkit {evidence.index.tool_version}"),
    )
    return facts_list(rows, code=True)


def verdicts_again(evidence: RoundEvidence) -> Again:
    """Decide every measured ticket, step and rerun anew, and lay the result beside the record."""
    rows: list[tuple[Value, ...]] = []
    differ = 0
    for subject, experiment_id, stands in _decided(evidence):
        computed = decide(evidence.experiment(experiment_id), evidence.run_spec)
        found = list(compare_verdicts(subject, stands, computed))
        differ += bool(found)
        rows.append(
            (
                subject,
                stands.verdict,
                computed.verdict,
                _gain(stands),
                _gain(computed),
                "; ".join(each.detail for each in found) if found else "agrees",
            )
        )
    headings = (
        Heading("ticket or step", "code"),
        Heading("recorded", "verdict"),
        Heading("recomputed", "verdict"),
        Heading("recorded gain", "percent"),
        Heading("recomputed gain", "percent"),
        Heading("result", "prose"),
    )
    empty = "No verdict rests on an experiment."
    return Again(Table("Verdicts, decided anew", headings, tuple(rows), empty=empty), differ)


def _decided(evidence: RoundEvidence) -> Iterator[tuple[str, str, VerdictRecord]]:
    """Yield what has a verdict from an experiment; a deadline's verdict is from none."""
    there = set(evidence.experiment_ids)
    for ticket in evidence.ledger.tickets:
        recorded = [name for name in ticket.experiments if name in there]
        if ticket.verdict is not None and ticket.verdict.reason != "deadline" and recorded:
            yield ticket.ticket, recorded[-1], ticket.verdict
    for step in evidence.ledger.composition:
        if step.experiment is not None:
            yield f"step {step.step}: {step.lane}", step.experiment, step.verdict
    for rerun in evidence.ledger.rerun:
        if rerun.experiment is not None:
            yield rerun.kind, rerun.experiment, rerun.verdict


def _gain(verdict: VerdictRecord) -> Value:
    return verdict.gain if verdict.gain is not None else Missing(verdict.reason)


def schedules_again(evidence: RoundEvidence) -> Again:
    """Draw the order of every experiment anew from the revealed secret."""
    rows: list[tuple[Value, ...]] = []
    differ = 0
    pairs = evidence.plan.gates.ab_ba_pairs
    for record in evidence.experiments():
        wanted = plan_schedule(evidence.secret, evidence.round_digest, record.experiment_id, pairs)
        ran = [trial.planned for trial in record.trials]
        agrees = list(wanted)[: len(ran)] == ran
        differ += not agrees
        orders = "".join(
            trial.order[0] for trial in ran if trial.pair is not None and trial.side == "baseline"
        )
        rows.append(
            (record.experiment_id, len(ran), orders or None, "agrees" if agrees else "another order or seed")
        )
    headings = (
        Heading("experiment", "code"),
        Heading("trials", "number"),
        Heading("first of each pair", "code"),
        Heading("result"),
    )
    return Again(
        Table("Schedules, drawn anew", headings, tuple(rows), empty="No experiment was recorded."), differ
    )


def audit_verdict(audit: AuditReport, *recomputed: Again) -> Outcome:
    """Return the verdict that the audit's notebook ends with."""
    differ = sum(each.differ for each in recomputed)
    done = audit.passed and differ == 0
    return conclude(done, f"Audit of {audit.subject}", audit_sentence(audit))
