"""The demo, as the README's first command runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_the_demo_keeps_the_gains_rejects_the_cheat_and_audits(open_folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "roundkit", "demo", "--out", open_folder / "demo"],
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert last == f"report: {open_folder / 'demo' / 'report.html'}"
    assert Path(last.removeprefix("report: ")).stat().st_size < 5_000_000
    assert "audit: every check passed" in done.stdout
    for lane, found in {"L1": "pass gain", "L6": "rejected protected-path", "L7": "rejected build"}.items():
        row = next(line for line in done.stdout.splitlines() if line.startswith(f"│ {lane} "))
        assert found in row
        assert "NOT as expected" not in row
