"""roundkit installed from its wheel, in an empty folder: everything is there, and no checkout is needed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support.packages import ROOT, Installed
from support.synthetic import commit_all, write_files
from support.terminals import Terminal

import roundkit
from roundkit.core.git import Repository

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def evidence(installed: Installed) -> Path:
    """Published evidence, copied to where roundkit works."""
    shutil.copytree(ROOT / "evidence/code-search", installed.folder / "evidence/code-search")
    return Path("evidence/code-search/rounds/r01")


def test_the_version_is_the_packages(installed: Installed) -> None:
    assert installed.run("--version") == f"roundkit {roundkit.__version__}\n"
    script = "from importlib.metadata import version; print(version('roundkit'))"
    said = subprocess.run(
        [installed.python, "-c", script],
        env=installed.variables(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == roundkit.__version__


def test_doctor_says_that_rounds_can_run_and_how_to_get_the_extra(installed: Installed) -> None:
    told = json.loads(installed.run("doctor", "--json"))
    found = {each["name"]: each for part in told["parts"] for each in part["findings"]}
    assert told["ready"]
    assert found["several machines (roundkit[cluster])"]["remedy"] == "pip install 'roundkit[cluster]'"


@pytest.mark.parametrize(
    "words",
    [
        ("worker", "--scheduler", "tcp://127.0.0.1:1", "--device-sets", "sets.yaml"),
        ("cluster", "cert", "certs"),
        ("cluster", "job-script", "slurm.yaml", "--scheduler", "tcp://127.0.0.1:1"),
    ],
)
def test_without_the_extra_a_command_of_a_cluster_says_how_to_get_it(
    installed: Installed, words: tuple[str, ...]
) -> None:
    said = installed.run(*words, expect=3)
    assert "[missing-extra]" in said
    assert "pip install 'roundkit[cluster]'" in said
    assert not (installed.folder / "certs").exists()


def test_init_writes_a_campaign_and_the_notebooks(installed: Installed) -> None:
    repository = installed.folder / "mine"
    write_files(repository, {"bench.py": "sum(range(100000))\n"})
    Repository(repository).git("init", "-q", "-b", "main")
    commit_all(Repository(repository), ["."], "A program")
    installed.run(
        "init", "mine", "--benchmark", "/usr/bin/python3 bench.py", "--pairs", "6", "--validator", "true"
    )
    shipped = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {path.name for path in (repository / "campaign/notebooks").iterdir()} == shipped
    assert "noise: {sigma: " in (repository / "campaign/campaign.yaml").read_text()


def test_the_examples_ship(installed: Installed) -> None:
    installed.run("pilot", "example", "pilot")
    installed.run("pilot", "simulate", "pilot/pilot.yaml", "--pilots", "20")
    installed.run("waves", "example", "waves", "--targets", "5")
    assert (installed.folder / "waves/wave-plan.yaml").is_file()


def test_published_evidence_is_audited_reported_and_exported(installed: Installed, evidence: Path) -> None:
    installed.run("audit", evidence)
    installed.run("report", evidence, "--out", "report.html")
    assert b"<html" in (installed.folder / "report.html").read_bytes()
    installed.run("export", "evidence", "--out", "frames")
    assert (installed.folder / "frames/tickets.parquet").is_file()


def test_a_notebook_runs_by_its_name(installed: Installed, evidence: Path) -> None:
    said = installed.run("notebook", "audit_evidence", "-p", f"evidence={evidence}", "--out", "audited.ipynb")
    assert "audited.ipynb" in said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_completion_script_for_each_shell(installed: Installed, shell: str) -> None:
    done = subprocess.run(
        ["roundkit"], env={**installed.variables(), "_ROUNDKIT_COMPLETE": f"source_{shell}"},
        cwd=installed.folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "_ROUNDKIT_COMPLETE=complete_" + shell in done.stdout


def test_tab_completes_a_command_in_bash(installed: Installed) -> None:
    install = ["bash", "-c", "roundkit --install-completion; true"]
    subprocess.run(install, env=installed.variables(), cwd=installed.folder, check=True, capture_output=True)
    shell = Terminal(["bash", "-i"], cwd=installed.folder, environment=installed.variables())
    shell.wait_for(r"[#$] $")
    shell.type("roundkit pi\t")
    shell.wait_for("roundkit pilot ")
    shell.type("sim\t")
    shell.wait_for("roundkit pilot simulate ")
    shell.type("--help\nexit\n")
    assert shell.end() == 0
    assert "power and cost" in shell.printed


def test_the_demo_runs_from_the_wheel(installed: Installed) -> None:
    said = installed.run("demo", "--out", "demo")
    assert "every check passed" in said
    assert (installed.folder / "demo/report.html").is_file()
