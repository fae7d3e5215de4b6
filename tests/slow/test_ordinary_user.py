"""A whole round started by an ordinary user: the same tests, under a user id without any rights."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.ordinary_user import PYTHON, ROOT, as_stranger, stranger_environment, unavailable

pytestmark = [pytest.mark.slow, pytest.mark.needs_root]


@pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")
def test_r01_as_an_ordinary_user(open_folder: Path) -> None:
    done = subprocess.run(
        as_stranger(
            [PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "tests/rounds/test_round.py",
             "tests/measure/test_experiment.py", "tests/agents/test_lane_boundary.py",
             "tests/pilots/test_run.py", "tests/pilots/test_gateway.py"]
        ),
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=900,
        env=stranger_environment(open_folder / "home"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
