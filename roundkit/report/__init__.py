"""Floor 6: views for notebooks, notebooks run with checked parameters, and one offline HTML file."""

from roundkit.report.audit_views import (
    audit_headline,
    audit_near,
    audit_verdict,
    checks_table,
    evidence_near,
    failed_checks,
    files_table,
    index_facts,
    schedules_again,
    verdicts_again,
)
from roundkit.report.comparison_page import comparison_page
from roundkit.report.frame_tables import frame_table, opening
from roundkit.report.markup import counted
from roundkit.report.outcome import Outcome, conclude
from roundkit.report.parameters import check_parameters
from roundkit.report.round_tables import (
    all_tickets,
    attempts_table,
    composition_table,
    decision_table,
    lanes_table,
    rejected_table,
)
from roundkit.report.round_views import (
    audited,
    footer,
    headline,
    measurement_notes,
    open_round,
    rerun_note,
    round_verdict,
    samples_note,
)
from roundkit.report.round_words import audit_sentence, page_title, telling_experiments
from roundkit.report.run import (
    NotebookFailed,
    NotebookRun,
    build_report,
    build_waves_report,
    run_notebook,
)
from roundkit.report.shelf import ShippedNotebook, copy_notebook, shipped_notebooks
from roundkit.report.views import Figure, Html, Table, figure

__all__ = [
    "Figure",
    "Html",
    "NotebookFailed",
    "NotebookRun",
    "Outcome",
    "ShippedNotebook",
    "Table",
    "all_tickets",
    "attempts_table",
    "audit_headline",
    "audit_near",
    "audit_sentence",
    "audit_verdict",
    "audited",
    "build_report",
    "build_waves_report",
    "check_parameters",
    "checks_table",
    "comparison_page",
    "composition_table",
    "conclude",
    "copy_notebook",
    "counted",
    "decision_table",
    "evidence_near",
    "failed_checks",
    "figure",
    "files_table",
    "footer",
    "frame_table",
    "headline",
    "index_facts",
    "lanes_table",
    "measurement_notes",
    "open_round",
    "opening",
    "page_title",
    "rejected_table",
    "rerun_note",
    "round_verdict",
    "run_notebook",
    "samples_note",
    "schedules_again",
    "shipped_notebooks",
    "telling_experiments",
    "verdicts_again",
]
