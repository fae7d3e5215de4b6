"""A person's mistakes: a sentence, the right exit code, never a traceback, nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
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


def test_ctrl_c_leaves_a_sentence(three_lanes: CampaignRepo, open_folder: Path) -> None:
    folder, _ = three_lanes.launched(open_folder / "round")
    watching = subprocess.Popen(
        [sys.executable, "-m", "roundkit", "status", folder.root, "--watch"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert watching.stdout is not None
    assert watching.stdout.readline()
    watching.send_signal(signal.SIGINT)
    _, said = watching.communicate(timeout=120)
    assert watching.returncode == 1
    assert "interrupted" in said
    assert "Traceback" not in said
