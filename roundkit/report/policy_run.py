"""The report of a policy pilot as one offline HTML file."""

from __future__ import annotations

from pathlib import Path

from roundkit.audit.policy_material import read_policy
from roundkit.core.progress import SILENT, Progress
from roundkit.report.notebook_runs import NotebookRun, built

_NOTEBOOK = "policy_report"


def build_policy_report(source: Path, out_html: Path, *, progress: Progress = SILENT) -> NotebookRun:
    """Write the report of a policy pilot as one offline HTML file.

    Args:
        source: The pilot's folder.
        out_html: The file to write; the same evidence gives the same bytes.
        progress: Shows cells.

    Raises:
        EvidenceProblem: the folder is no policy pilot's.
        NotebookFailed: the evidence does not agree with itself; the executed notebook lies beside the page.
    """
    read_policy(source)
    return built(_NOTEBOOK, {"pilot": str(source.resolve())}, out_html, progress)
