"""A person's mistakes: a sentence, the right exit code, never a traceback, nothing half-written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.sample_evidence import export_sample, sample_round
from support.small_disk import mounted_disk
from support.synthetic import CampaignRepo

from .test_cli import roundkit


@pytest.mark.parametrize(
    ("options", "expect", "said"),
    [
        (["--benchmark", "true", "--pairs", "7"], 2, "even"),
        (["--benchmark", ""], 2, "empty"),
        (["--benchmark", "x '"], 2, "closing quotation"),
        (["--benchmark", "true", "--timeout", "0"], 2, "--timeout"),
        (["--benchmark", "true", "--metric", "a b"], 3, "metric.name"),
    ],
)
def test_n02_replay_says_what_is_wrong_with_an_option(
    three_lanes: CampaignRepo, open_folder: Path, options: list[str], expect: int, said: str
) -> None:
    base = three_lanes.repository.git("rev-parse", "HEAD").text
    head = three_lanes.commit({"knobs/L1.json": "{}"})
    out = open_folder / "out"
    printed = roundkit(
        "replay", f"{base}..{head}", "--repository", three_lanes.root, "--out", out, *options, expect=expect
    )
    assert said in printed
    assert not out.exists()


def test_n02_a_replay_that_is_refused_leaves_nothing_in_its_way(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    base = three_lanes.repository.git("rev-parse", "HEAD").text
    head = three_lanes.commit({"knobs/L1.json": "{}"})
    (three_lanes.root / "knobs/L1.json").write_text("not committed")
    out = open_folder / "out"
    words = ("replay", f"{base}..{head}", "--repository", three_lanes.root, "--benchmark", "true")
    for _ in range(2):
        assert "[repository-dirty]" in roundkit(*words, "--out", out, expect=3)
        assert not out.exists()
    out.mkdir()
    assert "[repository-dirty]" in roundkit(*words, "--out", out, expect=3)
    assert not list(out.iterdir())


@pytest.mark.slow
def test_n02_files_in_the_place_of_folders_are_refused(three_lanes: CampaignRepo, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    plans = ["--campaign", three_lanes.campaign_file, "--round", three_lanes.round_file]
    assert "[demo-folder]" in roundkit("demo", "--out", file, expect=3)
    assert "[secret-size]" in roundkit(
        "prepare", *plans, "--out", tmp_path / "r", "--secret-file", file, expect=3
    )
    assert "[missing-file]" in roundkit(
        "prepare", *plans, "--out", tmp_path / "r", "--secret-file", tmp_path / "none", expect=3
    )
    assert "[out-exists]" in roundkit("prepare", *plans, "--out", file, expect=3)
    assert file.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("report", "empty", "--out", "r.html"),
            "empty holds nothing of a round\n    → name the folder that holds index",
        ),
        (("report", "none", "--out", "r.html"), "there is no folder none\n    → "),
        (
            ("pilot", "report", "empty", "--out", "r.html"),
            "empty holds nothing of a pilot\n    → name the folder",
        ),
        (("pilot", "review", "packet", "empty"), "freeze one: roundkit pilot prepare"),
        (("pilot", "review", "pause", "empty", "X"), "freeze one: roundkit pilot prepare"),
        (("pilot", "intervene", "empty", "X", "--kind", "other"), "freeze one: roundkit pilot prepare"),
        (
            ("pilot", "prepare", "file.yaml", "--out", "p"),
            "it names no kind of pilot\n    → write one of kind: paired",
        ),
        (("drain", "empty"), "[not-a-round]"),
        (("waves", "status", "empty"), "freeze one: `roundkit waves run"),
        (("export", "empty", "--out", "frames"), "name a round directory, an evidence folder"),
    ],
)
def test_a_folder_that_holds_nothing_is_refused_with_what_to_name(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.yaml").write_text("nope: 1\n")
    assert said in roundkit(*words, expect=3, cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["empty", "file.yaml"]


@pytest.mark.parametrize(
    "words",
    [
        ("worker", "--scheduler", "tls://127.0.0.1:1", "--device-sets", "none.yaml", "--keep-records"),
        ("cluster", "cert", "certs", "--days"),
        ("replay", "a..b", "--benchmark", "true", "--out", "out", "--hours"),
    ],
)
def test_times_beyond_the_calendar_are_wrong_usage(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert "less than or equal to" in roundkit(*words, "999999999999", expect=2, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_policy_pilot_has_no_reviews() -> None:
    folder = Path(__file__).resolve().parents[2] / "evidence/knobs/pilots/p-versus-s"
    said = roundkit("pilot", "review", "packet", folder, expect=3)
    assert "[other-kind]" in said
    assert "are for the trials of a paired pilot" in said


@pytest.mark.slow
def test_a_disk_that_a_page_fills_says_to_make_room(open_folder: Path) -> None:
    evidence = export_sample(open_folder / "c" / "r01", sample_round(), open_folder / "scratch")
    with mounted_disk(open_folder, 1) as disk:
        words = ("report", evidence, "--out", disk / "report.html")
        done = subprocess.run(
            [sys.executable, "-m", "roundkit", *words], capture_output=True, text=True, check=False
        )
        assert list(disk.iterdir()) == []
    assert done.returncode == 1
    assert "No space left on device\n    → make room and run it again" in done.stderr
