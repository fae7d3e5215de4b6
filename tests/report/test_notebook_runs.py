"""Running notebooks: parameters are checked, and nothing half-done reads as done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from roundkit.core.errors import Refused
from roundkit.evidence import EvidenceProblem
from roundkit.report import NotebookFailed, build_report, check_parameters, run_notebook

LAST = """from IPython.display import display
display({"application/vnd.roundkit.outcome+json": {"outcome": "done"}}, raw=True)"""


def write_notebook(folder: Path, *cells: str) -> Path:
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    )
    parameters = nbformat.v4.new_code_cell(
        'place: str = "somewhere"  # a place\ncount: int = 3  # how many', metadata={"tags": ["parameters"]}
    )
    notebook.cells = [parameters, *map(nbformat.v4.new_code_cell, ("print(place, count)", *cells))]
    path = folder / "example.ipynb"
    nbformat.write(notebook, path)
    return path


def codes(refused: pytest.ExceptionInfo[Refused]) -> set[str]:
    return {refusal.code for refusal in refused.value.refusals}


def test_fault_28_a_misspelt_parameter_is_refused(tmp_path: Path) -> None:
    source = write_notebook(tmp_path, LAST)
    with pytest.raises(Refused) as refused:
        run_notebook(source, {"plaice": "here"}, tmp_path / "out.ipynb")
    assert codes(refused) == {"unknown-parameter"}
    assert "place: str = 'somewhere'  # a place" in str(refused.value)
    assert not (tmp_path / "out.ipynb").exists()


@pytest.mark.parametrize("value", ["many", 2.5, True, None, "12e3456"])
def test_n02_a_wrong_type_is_refused(tmp_path: Path, value: object) -> None:
    source = write_notebook(tmp_path, LAST)
    with pytest.raises(Refused) as refused:
        run_notebook(source, {"count": value}, tmp_path / "out.ipynb")
    assert codes(refused) == {"wrong-type"}
    assert not (tmp_path / "out.ipynb").exists()


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", float("nan")])
def test_n02_a_number_that_is_none_is_refused(tmp_path: Path, value: object) -> None:
    source = write_notebook(tmp_path, LAST)
    notebook = nbformat.read(source, as_version=4)
    notebook.cells[0].source = 'place: str = "x"\ncount: float = 1.0'
    nbformat.write(notebook, source)
    with pytest.raises(Refused) as refused:
        run_notebook(source, {"count": value}, tmp_path / "out.ipynb")
    assert codes(refused) == {"wrong-type"}


def test_n02_a_copy_with_magics_runs(tmp_path: Path) -> None:
    cells = ("%matplotlib --list\n!echo {place}", "%%capture\nprint(count)", LAST)
    source = write_notebook(tmp_path, *cells)
    notebook = nbformat.read(source, as_version=4)
    notebook.cells[2].source = "%time print('hello')\n!echo {place}"
    nbformat.write(notebook, source)
    assert run_notebook(source, {"count": 4}, tmp_path / "out.ipynb").outcome.outcome == "done"


@pytest.mark.parametrize(
    ("parameters", "cell", "code"),
    [
        ('place: str = "x"\ncount: int = 3', "if count place:", "malformed"),
        ('place: str = "x\ncount: int = 3', "print(count)", "malformed"),
        ('place: str = "x"\ncount: ndarray = 3', "print(count)", "unknown-type"),
        ('place: str = "x"\ncount: "open(1)" = 3', "print(count)", "unknown-type"),
    ],
)
def test_n02_a_copy_that_is_no_python_is_a_sentence(
    tmp_path: Path, parameters: str, cell: str, code: str
) -> None:
    source = write_notebook(tmp_path, cell, LAST)
    notebook = nbformat.read(source, as_version=4)
    notebook.cells[0].source = parameters
    nbformat.write(notebook, source)
    with pytest.raises(Refused) as refused:
        run_notebook(source, {"count": "4"}, tmp_path / "out.ipynb")
    assert codes(refused) == {code}


@pytest.mark.parametrize(
    ("out", "html", "code"),
    [
        ("a.ipynb", "a.ipynb", "same-file"),
        (".", None, "output-folder"),
        ("a.ipynb", ".", "output-folder"),
        ("/proc/a.ipynb", None, "output-folder"),
        ("a.ipynb", "/proc/a.html", "output-folder"),
    ],
)
def test_n02_a_place_that_takes_no_file_is_refused_before_anything_runs(
    tmp_path: Path, out: str, html: str | None, code: str
) -> None:
    source = write_notebook(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')", LAST)
    with pytest.raises(Refused) as refused:
        run_notebook(source, {}, tmp_path / out, None if html is None else tmp_path / html)
    assert codes(refused) == {code}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["example.ipynb"]


@pytest.mark.slow
def test_n02_a_disk_that_takes_no_more_is_a_sentence(tmp_path: Path) -> None:
    write_notebook(tmp_path, "print('x' * 200_000)", LAST)
    command = f"ulimit -f 64; exec {sys.executable} -m roundkit notebook example.ipynb --out out.ipynb"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("roundkit: ")
    assert [path.name for path in tmp_path.iterdir()] == ["example.ipynb"]


def test_n02_a_parameter_that_nothing_reads_is_refused(tmp_path: Path) -> None:
    source = write_notebook(tmp_path, LAST)
    notebook = nbformat.read(source, as_version=4)
    notebook.cells[1].source = "print(place)"
    nbformat.write(notebook, source)
    with pytest.raises(Refused) as refused:
        run_notebook(source, {}, tmp_path / "out.ipynb")
    assert codes(refused) == {"unread-parameter"}


def test_n02_a_missing_round_leaves_no_page(tmp_path: Path) -> None:
    with pytest.raises(EvidenceProblem):
        build_report(tmp_path / "nothing", tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_n02_an_unknown_notebook_names_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="round_report"):
        run_notebook("round_raport", {}, tmp_path / "out.ipynb")


def test_fault_31_a_finished_notebook_repeats_and_names_no_place(tmp_path: Path) -> None:
    source = write_notebook(tmp_path, LAST)
    secret = tmp_path / "home of somebody"
    for out in ("one.ipynb", "two.ipynb"):
        run = run_notebook(source, {"place": str(secret), "count": "7"}, tmp_path / "published" / out)
        assert run.outcome.outcome == "done"
    one, two = (tmp_path / "published" / name for name in ("one.ipynb", "two.ipynb"))
    assert one.read_bytes() == two.read_bytes()
    cells = nbformat.read(one, as_version=4).cells
    assert 'place = "home of somebody"\ncount = 7' in cells[1].source
    assert "papermill" not in str(cells[1].metadata)


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("import sys; sys.exit(0)", "SystemExit"),
        ("import os; os._exit(0)", "never ran|no verdict|DeadKernel"),
        ("raise ValueError('first line\\nsecond')", "ValueError: first line"),
    ],
    ids=["sys-exit", "dead-kernel", "failing-cell"],
)
def test_fault_29_a_notebook_that_did_not_end_has_failed(tmp_path: Path, cell: str, reason: str) -> None:
    source = write_notebook(tmp_path, cell, LAST)
    out, page = tmp_path / "out.ipynb", tmp_path / "out.html"
    with pytest.raises(NotebookFailed, match=reason) as failed:
        run_notebook(source, {}, out, page)
    assert failed.value.exit_code == 1
    assert len(str(failed.value).splitlines()) == 2
    nbformat.read(out, as_version=4)
    assert not page.exists()


def test_fault_29_a_notebook_without_a_verdict_has_failed(tmp_path: Path) -> None:
    source = write_notebook(tmp_path, "1 + 1")
    with pytest.raises(NotebookFailed, match="no verdict"):
        run_notebook(source, {}, tmp_path / "out.ipynb")


def test_n02_plain_papermill_is_checked_by_the_notebook_itself() -> None:
    check_parameters({"evidence": "a folder", "_private": 1, "In": []}, evidence=str)
    with pytest.raises(Refused) as refused:
        check_parameters({"evidence": 3, "evidance": "a folder"}, evidence=str)
    assert codes(refused) == {"unknown-parameter", "wrong-type"}
