"""``roundkit init``: a campaign begun in a repository, with its benchmark run behind the boundary."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest
from support.checkouts import METRIC, PYTHON, Bench, argv
from support.synthetic import commit_all

from roundkit.core.git import Repository
from roundkit.core.yamlfile import load_yaml, plain
from roundkit.models.campaign import CampaignPlan
from roundkit.rounds.template_files import checked_campaign

BENCHMARK = ("--benchmark", f"{PYTHON} bench.py", *METRIC)
VALIDATOR = ("--validator", f"{PYTHON} validate.py")
SIX = ("--pairs", "6")


@pytest.fixture
def bench(open_folder: Path) -> Bench:
    """A repository ``mine`` with a program, a benchmark and a validator."""
    made = Bench(open_folder)
    repository = made.add("mine")
    Repository(repository).git("init", "-q", "-b", "trunk")
    commit_all(Repository(repository), ["."], "A program")
    return made


def campaign(bench: Bench, folder: str = "mine/campaign") -> CampaignPlan:
    data = (bench.root / folder / "campaign.yaml").read_bytes()
    return checked_campaign(plain(load_yaml(data, place="campaign.yaml")), "campaign.yaml")


def test_a_strangers_repository_gets_a_campaign_that_prepare_takes(bench: Bench) -> None:
    ran = bench.run("init", "mine", *BENCHMARK, *VALIDATOR, *SIX, expect=0)
    assert "With 12 pairs any gain shows in four experiments of five" in ran.out
    made = campaign(bench)
    head = Repository(bench.root / "mine").resolve("HEAD")
    assert (made.campaign_id, made.repository.path, made.repository.branch) == ("mine", "..", "trunk")
    assert made.search_state.incumbent_revision == head
    assert (made.metric.name, made.benchmark.instrument) == ("latency_ms", "reported")
    assert made.validator is not None
    assert made.test_plan.noise is not None
    assert made.test_plan.noise.sigma == 0.0
    text = (bench.root / "mine/campaign/campaign.yaml").read_text()
    for comment in ("# What else runs, each behind the boundary", "# or higher", "build: null"):
        assert comment in text
    notebooks = {path.name for path in (bench.root / "mine/campaign/notebooks").iterdir()}
    assert {"prepare.ipynb", "control.ipynb", "round_report.ipynb"} <= notebooks
    proposed = bench.run("prepare", "--campaign", "mine/campaign/campaign.yaml", "--propose", "1", expect=0)
    assert "lanes:" in proposed.out


def test_nothing_is_overwritten(bench: Bench) -> None:
    (bench.root / "mine/campaign").mkdir()
    (bench.root / "mine/campaign/campaign.yaml").write_text("mine: true\n")
    ran = bench.run("init", "mine", *BENCHMARK, *VALIDATOR, "--no-noise", expect=3)
    assert "[exists]" in ran.err
    assert (bench.root / "mine/campaign/campaign.yaml").read_text() == "mine: true\n"
    assert not (bench.root / "mine/campaign/notebooks").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("init", "mine", "--no-noise"), 2, "--benchmark"),
        (("init", "tmp", *BENCHMARK, "--no-noise"), 3, "[no-repository]"),
        (("init", "mine", "--benchmark", "a | b", "--no-noise"), 2, "no shell reads it"),
        (("init", "mine", "--benchmark", f"{PYTHON} missing.py", "--pairs", "6"), 3, "missing.py"),
        (("init", "mine", *BENCHMARK, "--pairs", "7"), 2, "even number"),
    ],
)
def test_bad_input_writes_nothing(bench: Bench, words: tuple[str, ...], code: int, said: str) -> None:
    ran = bench.run(*words, expect=code)
    assert said in ran.printed
    assert not (bench.root / "mine/campaign").exists()


def test_without_noise_the_gates_are_the_templates_and_it_says_so(bench: Bench) -> None:
    ran = bench.run("init", "mine", *BENCHMARK, "--no-noise", "--dir", "plans", "--name", "search", expect=0)
    assert "The noise is unknown (nobody measured it)" in ran.out
    made = campaign(bench, "plans")
    assert (made.campaign_id, made.repository.path) == ("search", "../mine")
    assert (made.test_plan.ab_ba_pairs, made.test_plan.min_gain, made.test_plan.noise) == (12, 0.01, None)


def test_a_person_is_asked_for_what_was_left_out(bench: Bench) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        argv("init", "mine", *METRIC, "--no-noise"), cwd=bench.root, env=bench.environment(TERM="dumb"),
        stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, f"{PYTHON} bench.py\n{PYTHON} validate.py\n".encode())
    said, _ = process.communicate(timeout=120)
    os.close(ours)
    assert process.returncode == 0, said
    assert "Benchmark command" in said
    made = campaign(bench)
    assert made.benchmark.argv is not None
    assert made.benchmark.argv[-1] == "bench.py"
    assert made.validator is not None
