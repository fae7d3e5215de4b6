"""Floor 6: views for notebooks, notebooks run with checked parameters, and one offline HTML file."""

from roundkit.report.comparison_page import comparison_page
from roundkit.report.outcome import Outcome, conclude
from roundkit.report.parameters import check_parameters
from roundkit.report.round_tables import (
    all_tickets,
    composition_table,
    decision_table,
    lanes_table,
    rejected_table,
)
from roundkit.report.round_views import footer, headline, measurement_notes, open_round, rerun_note
from roundkit.report.round_words import audit_sentence, page_title, telling_experiments
from roundkit.report.run import NotebookFailed, NotebookRun, build_report, run_notebook
from roundkit.report.views import Figure, Html, Table, figure

__all__ = [
    "Figure",
    "Html",
    "NotebookFailed",
    "NotebookRun",
    "Outcome",
    "Table",
    "all_tickets",
    "audit_sentence",
    "build_report",
    "check_parameters",
    "comparison_page",
    "composition_table",
    "conclude",
    "decision_table",
    "figure",
    "footer",
    "headline",
    "lanes_table",
    "measurement_notes",
    "open_round",
    "page_title",
    "rejected_table",
    "rerun_note",
    "run_notebook",
    "telling_experiments",
]
