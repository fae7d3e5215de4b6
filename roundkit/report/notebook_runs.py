"""Running a notebook: load, check, execute, judge, tidy, write; and the reports of rounds and pilots."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundkit.audit import open_pilot
from roundkit.core.errors import RoundkitError
from roundkit.core.files import atomic_write
from roundkit.core.outputs import check_outputs
from roundkit.core.progress import SILENT, Progress
from roundkit.evidence.layout import INDEX
from roundkit.evidence.pilot_layout import PLAN, PUBLISHED
from roundkit.evidence.problem import problem
from roundkit.report.engine import engine_with
from roundkit.report.html import render_html
from roundkit.report.outcome import Outcome, read_outcome
from roundkit.report.parameters import read_parameters, validate_parameters
from roundkit.report.shipped_notebooks import find_notebook, notebook_bytes, read_notebook
from roundkit.rounds.snapshot import is_round_directory, open_source
from roundkit.waves.folder import open_campaign

_ROUND = "which `roundkit close` makes, or a round's own, which `roundkit prepare` makes"
_PILOT = "which `roundkit pilot prepare` makes"


@dataclass(frozen=True)
class NotebookRun:
    """A notebook that came to its end.

    Attributes:
        notebook: The executed notebook.
        html: The page made of it; None when none was asked for.
        outcome: What its last cell said.
    """

    notebook: Path
    html: Path | None
    outcome: Outcome


class NotebookFailed(RoundkitError):
    """A notebook did not come to its end, or its last cell said that it failed."""

    def __init__(self, name: str, reason: str, kept: Path) -> None:
        self.reason = reason
        self.kept = kept
        super().__init__(f"{name} failed: {reason}\n    → the executed notebook is kept at {kept}")


def run_notebook(
    name_or_path: str | Path,
    parameters: Mapping[str, object],
    out: Path,
    html: Path | None = None,
    *,
    progress: Progress = SILENT,
) -> NotebookRun:
    """Run a notebook with papermill and judge it by the verdict that its last cell writes.

    Args:
        name_or_path: A shipped notebook's name, or the path of one.
        parameters: Values by name; text is read as the type that the notebook declares.
        out: Where the executed notebook goes; written whole or not at all, also when it failed.
        html: Where a self-contained page goes; only a notebook that is done gets one.
        progress: Shows cells, and what long work inside them says.

    Raises:
        Refused: ``no-notebook``, ``unknown-parameter``, ``wrong-type``, ``output-folder``, ``same-file`` and
            the like: nothing was started or written.
        NotebookFailed: a cell failed, the kernel ended early, or the last cell said ``failed``.
    """
    source = find_notebook(name_or_path)
    declared = read_parameters(read_notebook(source), place=source.name)
    values = validate_parameters(declared, parameters, place=source.name)
    _check_places({"--out": out, "--html": html})
    executed = _execute(source, values, progress=progress)
    outcome = read_outcome(executed)
    tidy(executed, values, out.parent)
    atomic_write(out, notebook_bytes(executed))
    if outcome.outcome != "done":
        raise NotebookFailed(source.stem, outcome.sentence, out)
    if html is not None:
        atomic_write(html, render_html(executed, title=outcome.title).encode())
    return NotebookRun(out, html, outcome)


def build_report(source: Path, out_html: Path, *, progress: Progress = SILENT) -> NotebookRun:
    """Write the report of a round as one offline HTML file, marked provisional while the round is open.

    Args:
        source: The round's evidence folder, or its directory.
        out_html: The file to write; the same evidence, or the same state of a round, gives the same bytes.
        progress: Shows cells.

    Raises:
        EvidenceProblem: the folder holds no evidence (``no-evidence``), or none that can be read.
        Refused: ``output-folder``.
        NotebookFailed: the evidence does not agree with itself; the executed notebook lies beside the page.
    """
    _check_source(source, is_round_directory(source) or (source / INDEX).exists(), INDEX, "a round", _ROUND)
    open_source(source)
    return built("round_report", {"evidence": str(source.resolve())}, out_html, progress)


def build_pilot_report(source: Path, out_html: Path, *, progress: Progress = SILENT) -> NotebookRun:
    """Write the report of a paired pilot as one offline HTML file, provisional while tuples are missing.

    Args:
        source: The pilot's folder, or that of a published cohort.
        out_html: The file to write; the same folder gives the same bytes.
        progress: Shows cells.

    Raises:
        EvidenceProblem: the folder holds no pilot (``no-evidence``), or none that can be read.
        NotebookFailed: its evidence does not agree with itself; the executed notebook lies beside the page.
    """
    there = any((source / name).exists() for name in (PLAN, PUBLISHED))
    _check_source(source, there, f"{PLAN} or {PUBLISHED}", "a pilot", _PILOT)
    open_pilot(source)
    return built("pilot_report", {"pilot": str(source.resolve())}, out_html, progress)


def build_waves_report(source: Path, out_html: Path, *, progress: Progress = SILENT) -> NotebookRun:
    """Write the report of a wave campaign as one offline HTML file, as far as it has come.

    Args:
        source: The campaign's folder, or an export of it.
        out_html: The file to write; the same records give the same bytes.
        progress: Shows cells.

    Raises:
        Refused: ``no-campaign``.
        NotebookFailed: nothing has been gated yet; the executed notebook lies beside the page.
    """
    open_campaign(source)
    return built("waves_report", {"waves": str(source.resolve())}, out_html, progress)


def _check_places(files: Mapping[str, Path | None]) -> None:
    """Refuse places that take no file, before hours of work are lost on them; folders are made."""
    check_outputs(files, folders_made=True)
    for path in filter(None, files.values()):
        path.absolute().parent.mkdir(parents=True, exist_ok=True)


def tidy(notebook: Any, values: Mapping[str, Any], beside: Path) -> None:
    """Take out of an executed notebook what would differ next time, or says whose machine this was.

    Times and paths that papermill notes are dropped; a parameter that is a path is shown relative to where
    the notebook goes, or by its last part when it lies elsewhere.
    """
    notebook.metadata.pop("papermill", None)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:02d}"
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            for value in values.values():
                if isinstance(value, str) and Path(value).is_absolute():
                    shown = _shown_path(Path(value), beside.resolve())
                    cell.source = cell.source.replace(_as_injected(value), _as_injected(shown))


def _check_source(source: Path, there: bool, file: str, what: str, made: str) -> None:
    if not there:
        raise problem(
            "no-evidence",
            f"{source} holds nothing of {what}" if source.is_dir() else f"there is no folder {source}",
            where=str(source),
            remedy=f"name the folder that holds {file}, {made}",
        )


def built(name: str, given: Mapping[str, object], out_html: Path, progress: Progress) -> NotebookRun:
    """Write the page of a report's notebook; the executed one is kept beside it where it failed.

    Raises:
        Refused: ``output-folder``.
        NotebookFailed: it failed.
    """
    _check_places({"--out": out_html})
    with tempfile.TemporaryDirectory(prefix="roundkit-report-") as scratch:
        executed = Path(scratch) / f"{name}.ipynb"
        try:
            return run_notebook(name, given, executed, out_html, progress=progress)
        except NotebookFailed as failed:
            kept = out_html.with_suffix(".failed.ipynb")
            atomic_write(kept, executed.read_bytes())
            raise NotebookFailed(name, failed.reason, kept) from failed


def _as_injected(text: str) -> str:
    """Return a text as papermill writes it into a cell: letters beyond ASCII become escapes."""
    return text.encode("unicode_escape").decode("ascii").replace('"', r"\"")


def _shown_path(path: Path, beside: Path) -> str:
    return str(path.relative_to(beside)) if path.is_relative_to(beside) else path.name


def _execute(source: Path, values: Mapping[str, Any], *, progress: Progress) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import papermill

        logging.getLogger("papermill").setLevel(logging.ERROR)
        with (
            tempfile.TemporaryDirectory(prefix="roundkit-notebook-") as scratch,
            engine_with(progress, source.stem) as engine,
        ):
            running = Path(scratch) / "running.ipynb"
            try:
                papermill.execute_notebook(
                    str(source), str(running), dict(values), kernel_name="python3", language="python",
                    progress_bar=False, log_output=False, report_mode=False, engine_name=engine,
                    extra_arguments=["--IPKernelApp.log_level=ERROR"],
                )  # fmt: skip
            except Exception as error:
                # Whatever papermill says, the cells are the record: they are read and judged either way.
                executed: Any = _read_back(running, error)
            else:
                executed = _read_back(running, None)
    executed.cells = [cell for cell in executed.cells if not _is_banner(cell)]
    return executed


def _read_back(running: Path, said: Exception | None) -> Any:
    """Return what papermill wrote; where that cannot be read (a full disk, no kernel), say what it said.

    Raises:
        RoundkitError: there is no executed notebook.
    """
    import nbformat

    try:
        return nbformat.read(running, as_version=4)  # type: ignore[no-untyped-call]
    except Exception as error:
        why = f"{type(said or error).__name__}: {said or error}".partition("\n")[0]
        raise RoundkitError(f"the notebook was not run to an end that can be read: {why}") from error


def _is_banner(cell: Any) -> bool:
    """Papermill puts a cell of its own in front of a failed one; the error itself stays."""
    return any(tag.startswith("papermill-error-cell") for tag in cell.metadata.get("tags", []))
