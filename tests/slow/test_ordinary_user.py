"""A whole round started by an ordinary user: the same tests, under a user id without any rights."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.needs_root]

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(sysconfig.get_path("purelib"))
PYTHON = Path("/usr/bin/python3")
UID = "2713"


def unavailable() -> str | None:
    """Say why this cannot be tried here."""
    if os.geteuid() != 0:
        return "only root can become somebody else; started by an ordinary user, every test shows this"
    if not PYTHON.exists():
        return f"{PYTHON} is missing"
    version = subprocess.run(
        [PYTHON, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True
    )
    if version.stdout.strip() != str(tuple(map(int, sysconfig.get_python_version().split(".")))):
        return f"{PYTHON} cannot load this environment's packages"
    if not all(parent.stat().st_mode & 0o001 for path in (ROOT / "x", SITE / "x") for parent in path.parents):
        return f"{ROOT} cannot be reached by an ordinary user"
    return None


@pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")
def test_r01_as_an_ordinary_user(open_folder: Path) -> None:
    home = open_folder / "home"
    home.mkdir()
    os.chown(home, int(UID), int(UID))
    done = subprocess.run(
        ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", PYTHON, "-m", "pytest",
         "-p", "no:cacheprovider", "tests/rounds/test_round.py", "tests/measure/test_experiment.py",
         "tests/agents/test_lane_boundary.py", "tests/pilots/test_run.py", "tests/pilots/test_gateway.py"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=900,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": f"{ROOT}:{SITE}",
             "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
