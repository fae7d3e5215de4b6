"""A notebook in a wrong folder: its cell shows the sentence that a terminal would, and no traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
PLACE = {
    "audit_evidence": ("evidence", "no-evidence"),
    "close": ("round_dir", "not-a-round"),
    "control": ("round_dir", "not-a-round"),
    "explore_ledger": ("places", "no-ledger"),
    "launch": ("round_dir", "not-a-round"),
    "pilot_report": ("pilot", "no-pilot"),
    "policy_report": ("pilot", "no-pilot"),
    "review": ("pilot", "no-pilot"),
    "round_report": ("evidence", "no-round"),
    "waves_report": ("waves", "no-campaign"),
}


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    """What runs a kernel's cells, in this process, which is itself again afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # replaced by a shell
        yield InteractiveShell()


def test_every_notebook_that_opens_something_is_tried() -> None:
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} - PLACE.keys() == {"prepare"}


@pytest.mark.parametrize("name", PLACE)
def test_n02_an_empty_folder_is_a_sentence_in_the_cell(
    name: str, shell: InteractiveShell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parameter, code = PLACE[name]
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    parameters, first, *_ = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    shell.reset(new_session=True)
    shell.run_cell(parameters)
    shell.run_cell(f"{parameter} = {str(tmp_path)!r}")
    assert not shell.run_cell(first).success
    shown = capsys.readouterr().out
    assert shown.startswith(f"roundkit: [{code}]")
    assert "\n    → " in shown
    assert "roundkit " in shown.partition("→")[2]
    assert "Traceback" not in shown
