"""``roundkit init``: a campaign begun in a repository, with its benchmark run behind the boundary."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.checkouts import METRIC, PYTHON, SIX, Bench, argv
from support.processes import ended_with_test
from support.synthetic import commit_all, write_files
from support.tools import needs_cpu_time

from roundkit.core.git import Repository
from roundkit.core.yamlfile import load_yaml, plain
from roundkit.models.campaign import CampaignPlan
from roundkit.rounds.template_files import checked_campaign

BENCHMARK = ("--benchmark", f"{PYTHON} bench.py", *METRIC)
VALIDATOR = ("--validator", f"{PYTHON} validate.py")


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
    assert "With 12 pairs a gain of 1 % or more passes in four experiments of five" in ran.out
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


def test_a_branch_beside_a_tag_of_its_name_is_written_as_git_has_it(bench: Bench) -> None:
    Repository(bench.root / "mine").git("tag", "trunk")
    bench.run("init", "mine", *BENCHMARK, "--no-noise", expect=0)
    assert campaign(bench).repository.branch == "trunk"


def test_notebooks_that_are_there_stay_and_are_not_counted(bench: Bench) -> None:
    words = ("init", "mine", *BENCHMARK, *METRIC, "--no-noise")
    assert " notebooks in mine/campaign/notebooks\n" in bench.run(*words, expect=0).out
    kept = bench.root / "mine/campaign/notebooks/prepare.ipynb"
    kept.write_text("mine")
    (bench.root / "mine/campaign/campaign.yaml").unlink()
    assert "\nwrote mine/campaign/campaign.yaml\n" in bench.run(*words, expect=0).out
    assert kept.read_text() == "mine"


def test_nothing_is_overwritten(bench: Bench) -> None:
    (bench.root / "mine/campaign").mkdir()
    (bench.root / "mine/campaign/campaign.yaml").write_text("mine: true\n")
    ran = bench.run("init", "mine", *BENCHMARK, *VALIDATOR, "--no-noise", expect=3)
    assert "[exists] --dir: " in ran.err
    assert (bench.root / "mine/campaign/campaign.yaml").read_text() == "mine: true\n"
    assert not (bench.root / "mine/campaign/notebooks").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("init", "mine", "--no-noise"), 2, "--benchmark"),
        (("init", "tmp", *BENCHMARK, "--no-noise"), 3, "[not-a-repository]"),
        (("init", "mine", "--benchmark", "a | b", "--no-noise"), 2, "no shell reads it"),
        (("init", "mine", "--benchmark", f"{PYTHON} missing.py", "--pairs", "6"), 3, "missing.py"),
        (("init", "mine", *BENCHMARK, "--pairs", "7"), 2, "even number"),
        (("init", "mine/sub", *BENCHMARK, "--no-noise"), 3, "name the top: "),
        (("init", "nowhere", *BENCHMARK, "--no-noise"), 3, "there is no folder"),
        (("init", "mine", "--benchmark", "./made", "--no-noise"), 3, "needs that command in --build"),
        (("init", "mine", *BENCHMARK, "--dir", "mine/bench.py/campaign"), 3, "[output-folder] --dir: "),
        (("init", "mine", *BENCHMARK, "--dir", "/proc/campaign"), 3, "takes no file"),
    ],
)
def test_bad_input_writes_nothing(bench: Bench, words: tuple[str, ...], code: int, said: str) -> None:
    (bench.root / "mine/sub").mkdir()
    ran = bench.run(*words, expect=code)
    assert said in ran.printed
    assert not (bench.root / "mine/campaign").exists()


def test_without_noise_the_gates_are_the_templates_and_it_says_so(bench: Bench) -> None:
    ran = bench.run("init", "mine", *BENCHMARK, "--no-noise", "--dir", "plans", "--name", "search", expect=0)
    assert "The noise is unknown (nobody measured it)" in ran.out
    made = campaign(bench, "plans")
    assert (made.campaign_id, made.repository.path) == ("search", "../mine")
    assert (made.test_plan.ab_ba_pairs, made.test_plan.min_gain, made.test_plan.noise) == (12, 0.01, None)


def answered(bench: Bench, *words: str, answers: Sequence[str]) -> str:
    """Run ``init`` with a terminal as its input, answer line by line, and return what it said."""
    ours, theirs = pty.openpty()
    process = ended_with_test(subprocess.Popen(
        argv("init", "mine", *words), cwd=bench.root, env=bench.environment(TERM="dumb"),
        stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ))  # fmt: skip
    os.close(theirs)
    os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
    said, _ = process.communicate(timeout=120)
    os.close(ours)
    assert process.returncode == 0, said
    return said


def test_a_person_is_asked_for_what_was_left_out(bench: Bench) -> None:
    said = answered(bench, *METRIC, "--no-noise", answers=(f"{PYTHON} bench.py", f"{PYTHON} validate.py"))
    assert "Benchmark command" in said
    made = campaign(bench)
    assert made.benchmark.argv is not None
    assert made.benchmark.argv[-1] == "bench.py"
    assert made.validator is not None


RESTLESS = ("--benchmark", f"{PYTHON} restless.py", "--pairs", "12")


@needs_cpu_time
@pytest.mark.slow
def test_a_script_is_told_of_a_quieter_clock_and_how_to_take_it(bench: Bench) -> None:
    ran = bench.run("init", "mine", *RESTLESS, expect=0)
    assert "CPU time is far less noisy here: with 12 pairs `cpu` shows a gain of" in ran.out
    assert "leaves out waiting" in ran.out
    assert campaign(bench).metric.name == "wall_ms"
    remove, again = ran.out.split("to let it decide, begin again:\n")[1].splitlines()[:2]
    for command in (remove, again):
        assert command.startswith("  ")
    (bench.root / shlex.split(remove)[1]).unlink()
    ran = bench.run(*shlex.split(again)[1:], expect=0)
    assert "far less noisy" not in ran.out
    made = campaign(bench)
    assert (made.metric.name, made.benchmark.instrument) == ("cpu_ms", "cpu")


@needs_cpu_time
@pytest.mark.slow
@pytest.mark.parametrize(("answer", "decides"), [("y", "cpu"), ("", "wall")])
def test_a_person_is_asked_whether_the_quieter_clock_decides(bench: Bench, answer: str, decides: str) -> None:
    said = answered(bench, *RESTLESS, answers=("", answer))
    assert "Let `cpu` decide instead of `wall`? [y/N]" in said
    assert said.count("CPU time is far less noisy") == 1
    assert "begin again" not in said
    made = campaign(bench)
    noise = made.test_plan.noise
    assert noise is not None
    assert (made.benchmark.instrument, noise.instrument) == (decides, decides)
    assert made.metric.name == f"{decides}_ms"
    assert f"what decides: {decides}_ms" in said


@pytest.mark.slow
def test_what_is_in_no_commit_is_said_before_anything_is_measured(bench: Bench) -> None:
    (bench.root / "mine/late.py").write_text("")
    ran = bench.run("init", "mine", "--benchmark", f"{PYTHON} late.py", *METRIC, *SIX, expect=3)
    assert "neither measured now nor taken by `roundkit prepare` later: 'late.py'" in ran.err
    assert "[command-missing] --benchmark: 'late.py' is there, but in no commit" in ran.err
    assert "pairs of the same" not in ran.err
    ran = bench.run("init", "mine", *BENCHMARK, "--no-noise", expect=0)
    assert "'late.py'" in ran.err


@pytest.mark.parametrize(
    ("command", "said"),
    [("checkout -q --detach", "[no-branch]"), ("checkout -q --orphan new", "[no-branch]")],
)
def test_a_repository_that_is_on_no_branch_is_refused(bench: Bench, command: str, said: str) -> None:
    Repository(bench.root / "mine").git(*command.split())
    ran = bench.run("init", "mine", *BENCHMARK, "--no-noise", expect=3)
    assert said in ran.err
    assert "git switch BRANCH" in ran.err


def test_a_repository_without_a_commit_is_refused(bench: Bench) -> None:
    Repository(bench.add("new")).git("init", "-q")
    ran = bench.run("init", "new", *BENCHMARK, "--no-noise", expect=3)
    assert "[empty-repository] REPOSITORY: " in ran.err


@pytest.mark.slow
def test_the_commands_that_come_next_can_be_typed(bench: Bench) -> None:
    (bench.root / "mine").rename(bench.root / "my program")
    ran = bench.run("init", "my program", *BENCHMARK, "--no-noise", expect=0)
    drafted = next(line for line in ran.out.splitlines() if "--propose" in line)
    words = shlex.split(drafted)
    proposed = bench.run(*words[1 : words.index(">")], expect=0)
    (bench.root / words[-1]).write_text(proposed.out)
    frozen = shlex.split(next(line for line in ran.out.splitlines() if "--out" in line))
    # A draft whose entry nobody has looked at lacks its globs, and nothing else.
    refused = bench.run(*frozen[1:], expect=3)
    assert re.findall(r"^(?:roundkit: )?\[([a-z-]+)\]", refused.err, re.MULTILINE) == ["wrong-value"]
    assert "lanes[0].globs" in refused.err
    assert "'globs' has fewer than 1\n    → fill it in" in refused.err


@pytest.mark.slow
def test_a_c_program_is_built_before_it_is_measured(bench: Bench) -> None:
    files = {"main.c": "int main(void) { return 0; }\n", "Makefile": "bench: main.c\n\tcc -o bench main.c\n"}
    (bench.root / "c").mkdir()
    write_files(bench.root / "c", files)
    Repository(bench.root / "c").git("init", "-q", "-b", "main")
    commit_all(Repository(bench.root / "c"), ["."], "A program")
    ran = bench.run("init", "c", "--benchmark", "./bench", "--build", "make -s bench", *SIX, expect=0)
    assert "what decides: wall_ms, lower is better" in ran.out
    made = campaign(bench, "c/campaign")
    assert made.build is not None
    assert made.build.argv == ("make", "-s", "bench")
    assert made.test_plan.noise is not None
