"""The report of a policy pilot as one offline HTML file."""

from __future__ import annotations

import tempfile
from pathlib import Path

from roundkit.audit.policy_material import read_policy
from roundkit.core.files import atomic_write
from roundkit.core.progress import SILENT, Progress
from roundkit.report.run import NotebookFailed, NotebookRun, run_notebook

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
    with tempfile.TemporaryDirectory(prefix="roundkit-report-") as scratch:
        executed = Path(scratch) / f"{_NOTEBOOK}.ipynb"
        try:
            given = {"pilot": str(source.resolve())}
            return run_notebook(_NOTEBOOK, given, executed, out_html, progress=progress)
        except NotebookFailed as failed:
            kept = out_html.with_suffix(".failed.ipynb")
            atomic_write(kept, executed.read_bytes())
            raise NotebookFailed(_NOTEBOOK, failed.reason, kept) from failed
