"""The notebooks that ship: run from elsewhere, compared with their committed outputs, copied."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from support.open_rounds import open_round_directory
from support.sample_evidence import export_sample, sample_round

from roundkit.core.errors import Refused
from roundkit.report import NotebookFailed, copy_notebook, run_notebook, shipped_notebooks

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ("audit_evidence", "explore_ledger", "pilot_report", "round_report")
COMMITTED = (*REPORTS, "policy_report")
PLACE = {
    "audit_evidence": "evidence",
    "explore_ledger": "places",
    "pilot_report": "pilot",
    "round_report": "evidence",
}
PUBLISHED = ROOT / "evidence/agent-task-comparison/pilots/published-2026-09-13"


def one_at_once(name: str, names: tuple[str, ...]) -> list[Any]:
    """Return notebooks of which one is run by the fast tests already; each takes a kernel of its own."""
    return [each if each == name else pytest.param(each, marks=pytest.mark.slow) for each in names]


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evidence, and a pilot, under a path with spaces and letters of several scripts."""
    base = tmp_path_factory.mktemp("straße 東京 & co")
    export_sample(base / "runde é" / "r01", sample_round(), base / "scratch")
    shutil.copytree(PUBLISHED, base / "runde é" / "p01")
    return base


def shows_something(cell: Any) -> bool:
    """Say whether a reader should see an output: the last line of the cell shows something."""
    last = cell.source.strip().splitlines()[-1]
    return last.startswith(("report.", "policy.", "display(", "    display(", "print(", "schedules", "again"))


@pytest.mark.parametrize("name", one_at_once("round_report", REPORTS))
def test_n01_a_notebook_runs_from_elsewhere_on_a_path_with_spaces(
    name: str, elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "arbeit ö"
    work.mkdir()
    monkeypatch.chdir(work)
    place = elsewhere / "runde é" / ("p01" if PLACE[name] == "pilot" else "r01")
    run = run_notebook(name, {PLACE[name]: str(place)}, Path("out é.ipynb"), Path("out é.html"))
    assert run.outcome.outcome == "done"
    for file in ("out é.ipynb", "out é.html"):
        assert f"{elsewhere.parent}/" not in (work / file).read_text()


@pytest.mark.slow
def test_n01_a_notebook_runs_on_an_open_round(tmp_path: Path) -> None:
    folder = open_round_directory(tmp_path / "open round", sample_round(), measured=2)
    run = run_notebook("explore_ledger", {"places": str(folder.root)}, tmp_path / "out.ipynb")
    assert run.outcome.sentence == "1 round of 1 campaign with 9 tickets"


def test_n01_plain_papermill_runs_the_same_file(elsewhere: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable, "-m", "papermill", ROOT / "notebooks/audit_evidence.ipynb",
            tmp_path / "out.ipynb",
            "-p", "evidence", elsewhere / "runde é" / "r01", "--cwd", tmp_path, "--no-progress-bar",
            "--log-level", "ERROR",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "every check passed" in (tmp_path / "out.ipynb").read_text()


@pytest.mark.parametrize("name", REPORTS)
def test_n02_a_missing_round_and_a_misspelt_parameter_leave_nothing(name: str, tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        run_notebook(name, {"evidnce": "x"}, tmp_path / "out.ipynb")
    assert refused.value.exit_code == 3
    assert f"{PLACE[name]}: str" in str(refused.value)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NotebookFailed, match=r"no-evidence|no-ledger|no-pilot|no-round"):
        run_notebook(name, {PLACE[name]: str(tmp_path / "none")}, tmp_path / "out.ipynb", tmp_path / "o.html")
    assert [path.name for path in tmp_path.iterdir()] == ["out.ipynb"]


def test_an_audit_of_damaged_evidence_names_the_place_and_fails(elsewhere: Path, tmp_path: Path) -> None:
    evidence = export_sample(tmp_path / "r01", sample_round(), tmp_path / "scratch")
    ledger = evidence / "round-ledger.json"
    ledger.write_bytes(ledger.read_bytes().replace(b'"pass"', b'"fail"', 1))
    with pytest.raises(NotebookFailed, match=r"wrong-digest|round-ledger"):
        run_notebook("audit_evidence", {"evidence": str(evidence)}, tmp_path / "out.ipynb")
    assert "round-ledger.json" in (tmp_path / "out.ipynb").read_text()


@pytest.mark.slow
def test_the_explorer_exports_what_was_filtered(elsewhere: Path, tmp_path: Path) -> None:
    out = tmp_path / "frames"
    given = {"places": str(elsewhere), "campaign": "demo", "export": str(out), "form": "csv"}
    run_notebook("explore_ledger", given, tmp_path / "out.ipynb")
    assert (out / "tickets.csv").is_file()
    with pytest.raises(NotebookFailed, match="nothing of campaign 'dmo'"):
        run_notebook("explore_ledger", {**given, "campaign": "dmo"}, tmp_path / "out.ipynb")


@pytest.mark.parametrize("name", COMMITTED)
def test_n03_committed_outputs_are_there_and_name_no_place(name: str) -> None:
    text = (ROOT / "notebooks" / f"{name}.ipynb").read_text()
    for place in (str(ROOT), str(Path.home()), "/tmp/", "papermill"):
        assert f"{place}" not in text or place == "/"
    cells = [cell for cell in nbformat.reads(text, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    silent = [cell.source for cell in cells if shows_something(cell) and not cell.outputs]
    assert not silent
    assert sum(map(shows_something, cells)) >= 9
    assert 20 <= len(nbformat.reads(text, as_version=4).cells) <= 40
    assert all("def " not in cell.source for cell in cells)


@pytest.mark.parametrize("name", one_at_once("audit_evidence", COMMITTED))
def test_n03_nbval_finds_the_committed_outputs(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "--nbval", "-p", "no:cacheprovider", "-p", "no:xdist", "-q",
            "--rootdir", tmp_path, "-c", os.devnull, f"notebooks/{name}.ipynb",
        ],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTEST_ADDOPTS": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_copy_has_no_outputs_and_overwrites_nothing(tmp_path: Path) -> None:
    copied = copy_notebook("round_report", tmp_path / "mine")
    cells = nbformat.read(copied, as_version=4).cells
    assert all(not cell.outputs for cell in cells if cell.cell_type == "code")
    with pytest.raises(Refused, match="exists"):
        copy_notebook("round_report", tmp_path / "mine")
    with pytest.raises(Refused, match="explore_ledger"):
        copy_notebook("explore_ledgers", tmp_path)


def test_the_list_tells_what_each_takes() -> None:
    listed = {notebook.name: notebook for notebook in shipped_notebooks()}
    assert set(REPORTS) <= set(listed)
    assert [parameter.name for parameter in listed["audit_evidence"].parameters] == [
        "evidence", "repository", "expect",
    ]  # fmt: skip
    assert all(parameter.meaning for each in listed.values() for parameter in each.parameters)
