"""The control notebooks in batch: a whole round, one notebook after the other, from a folder elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from support.killing import environment
from support.synthetic import CampaignRepo, knob, scripted_lane, write_files

from roundkit.audit import audit_round
from roundkit.core.resources import shipped
from roundkit.report.parameters import read_parameters
from roundkit.rounds.control_room import read_room
from roundkit.rounds.layout import RoundFolder, read_plan

CONTROL = ("prepare", "launch", "control", "close")


@pytest.fixture
def elsewhere(odd_place: Path) -> Path:
    """The folder in which the commands run, and notebooks are written."""
    folder = odd_place / "anderswo é"
    folder.mkdir()
    return folder


def notebook(
    elsewhere: Path, leases: Path, name: str, out: str, *parameters: str, expect: int = 0
) -> tuple[str, Any]:
    """Run ``roundkit notebook`` and return what it said, and the executed notebook where there is one."""
    given = [word for parameter in parameters for word in ("-p", parameter)]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "roundkit", "notebook", name, *given, "--out", out],
        cwd=elsewhere, env=environment(leases), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == expect, done.stdout + done.stderr
    path = elsewhere / out
    return done.stdout + done.stderr, nbformat.read(path, as_version=4) if path.exists() else None


def shown(executed: Any) -> str:
    """Return everything that a notebook's cells show as text."""
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    texts = [output.get("data", {}).get("text/plain", output.get("text", "")) for output in outputs]
    return "\n".join(texts)


def assert_every_cell_shows(executed: Any, quiet: Sequence[str] = ()) -> None:
    """Check that each code cell has an output, but for parameters and those that begin with given words."""
    for cell in executed.cells:
        if cell.cell_type == "code" and not {"parameters", "injected-parameters"} & set(cell.metadata.tags):
            assert cell.execution_count is not None
            assert cell.outputs or cell.source.startswith(tuple(quiet)), cell.source


def replayed(campaign: CampaignRepo, gains: dict[str, float]) -> None:
    """Have lanes filled by patches."""
    for lane, gain in gains.items():
        write_files(campaign.root, {f"knobs/{lane}.json": knob(gain)})
        patch = campaign.round_file.with_name(f"{lane}.patch")
        patch.write_bytes(campaign.repository.git("diff").stdout)
        campaign.repository.git("checkout", "--", ".")

        def edit(draft: Any, lane: str = lane, patch: Path = patch) -> None:
            row = next(row for row in draft["lanes"] if row["id"] == lane)
            row.update(harness="replay", replay=[str(patch)])

        campaign.edit_round(edit)


@pytest.mark.slow
def test_n01_a_whole_round_by_prepare_launch_close(
    odd_campaign: CampaignRepo, elsewhere: Path, lease_root: Path
) -> None:
    replayed(odd_campaign, {"L1": 0.5, "L2": 0.4})
    files = (f"campaign={odd_campaign.campaign_file}", f"round_file={odd_campaign.round_file}")
    said, looked = notebook(elsewhere, lease_root, "prepare", "looked.ipynb", *files)
    assert "nothing was frozen, since `out` is empty" in said
    assert "L1: E-L1\n  knobs/L1.json" in shown(looked)
    said, prepared = notebook(elsewhere, lease_root, "prepare", "prepared.ipynb", *files, "out=../the round")
    folder = RoundFolder(elsewhere.parent / "the round")
    digest = read_plan(folder).digest()
    assert f"digest {digest}" in said
    assert digest in shown(prepared)
    assert_every_cell_shows(prepared)
    again, _ = notebook(elsewhere, lease_root, "prepare", "again.ipynb", *files, "out=../the round")
    assert f"digest {digest}" in again

    here = f"round_dir={folder.root}"
    said, launched = notebook(
        elsewhere, lease_root, "launch", "launched.ipynb", here, f"digest={digest}", "drive=replay"
    )
    assert "2 of 2 tickets have an end" in said
    assert "lanes/L3/.roundkit/round submit" in shown(launched)
    assert_every_cell_shows(launched)
    said, looked = notebook(elsewhere, lease_root, "control", "control.ipynb", here)
    assert "No serve runs; no ticket waits." in said
    assert shown(looked).count("measured") >= 2
    assert_every_cell_shows(looked)
    said, closed = notebook(elsewhere, lease_root, "close", "closed.ipynb", here)
    assert "step-2-L2 pass" in said
    assert "The incumbent advances" in said
    assert "1, by construction" in shown(closed)
    assert_every_cell_shows(closed)
    # What prepare shows of the round file is its owner's text, paths of patches included.
    for executed in (launched, looked, closed):
        assert str(elsewhere.parent) not in str(executed)
    evidence = odd_campaign.root / "evidence/knobs/rounds/r01"
    assert audit_round(evidence, repository=odd_campaign.root).passed
    for name in ("prepared", "launched", "control", "closed"):
        nbval(elsewhere, f"{name}.ipynb", environment(lease_root))


def nbval(elsewhere: Path, name: str, env: dict[str, str]) -> None:
    """Run an executed notebook's cells again with nbval; a control notebook repeats nothing it has done."""
    notebook_file = elsewhere / name
    executed = nbformat.read(notebook_file, as_version=4)
    for cell in executed.cells:
        # Published notebooks name no place; to run again, they need theirs.
        if "injected-parameters" in cell.metadata.tags:
            cell.source = cell.source.replace('"the round"', repr("../the round"))
            for place in ("campaign.yaml", "round.yaml"):
                found = next(elsewhere.parent.rglob(place), None)
                cell.source = cell.source.replace(f'"{place}"', repr(str(found)))
    nbformat.write(executed, notebook_file)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--nbval-lax", "--rootdir=.", name],
        cwd=elsewhere, env={**os.environ, **env}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert f"{sum(cell.cell_type == 'code' for cell in executed.cells)} passed" in done.stdout


@pytest.mark.slow
def test_n01_close_may_measure_first_what_still_waits(
    odd_round: RoundFolder, elsewhere: Path, lease_root: Path
) -> None:
    scripted_lane(odd_round.clone("L1"), {"knobs/L1.json": knob(0.5)})
    here = f"round_dir={odd_round.root}"
    said, kept = notebook(elsewhere, lease_root, "close", "refused.ipynb", here, expect=1)
    problem, remedy, where = (line for line in said.splitlines() if line.startswith(("roundkit:", "    →")))
    assert problem.startswith("roundkit: close failed: code cell 4: Refused: [tickets-waiting]")
    assert "--until-idle" in remedy
    assert where.endswith("is kept at refused.ipynb")
    assert kept is not None
    said, _ = notebook(elsewhere, lease_root, "close", "closed.ipynb", here, "serve_first=true")
    assert "The incumbent advances" in said
    assert read_room(odd_round).closing.advanced


@pytest.mark.slow
def test_n01_a_draft_is_written_once_and_a_refused_round_is_a_failed_run(
    odd_campaign: CampaignRepo, elsewhere: Path, lease_root: Path
) -> None:
    files = (f"campaign={odd_campaign.campaign_file}", "round_file=drafts/round.yaml")
    said, drafted = notebook(elsewhere, lease_root, "prepare", "p.ipynb", *files, "propose=2", expect=1)
    assert "[wrong-value] round.yaml: lanes[0].globs" in said
    draft = (elsewhere / "drafts/round.yaml").read_bytes()
    assert b"Drafted by" in draft
    assert "round.yaml was drafted" in shown(drafted)
    (elsewhere / "drafts/round.yaml").write_bytes(draft + b"# mine\n")
    notebook(elsewhere, lease_root, "prepare", "p.ipynb", *files, "propose=2", expect=1)
    assert (elsewhere / "drafts/round.yaml").read_bytes() == draft + b"# mine\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTROL)
def test_n02_what_cannot_work_is_refused_before_anything_is_written(
    name: str, elsewhere: Path, lease_root: Path
) -> None:
    wrong = {"prepare": "propose=many", "launch": "drive=everything", "control": "refresh_s=soon"}
    given = ("roundid=r01", wrong.get(name, "serve_first=perhaps"))
    said, executed = notebook(elsewhere, lease_root, name, "out.ipynb", *given, expect=3)
    assert "[unknown-parameter]" in said
    assert "[wrong-type]" in said
    assert "it takes " in said
    assert executed is None
    if name != "prepare":
        said, executed = notebook(
            elsewhere, lease_root, name, "out.ipynb", "round_dir=../nothing there", expect=1
        )
        assert "[not-a-round]" in said
        assert executed is not None
    assert list(elsewhere.parent.glob("nothing*")) == []


@pytest.mark.parametrize("name", CONTROL)
def test_n03_control_notebooks_are_committed_without_outputs_and_stay_thin(name: str) -> None:
    source: Any = nbformat.read(shipped("notebooks") / f"{name}.ipynb", as_version=4)
    code = [cell for cell in source.cells if cell.cell_type == "code"]
    assert all(cell.execution_count is None and cell.outputs == [] for cell in code)
    assert all("def " not in cell.source for cell in code)
    for parameter in read_parameters(source, place=name):
        assert parameter.meaning.startswith("# "), parameter.name
