"""Commands run by a user without any rights: many in one process, each through the real command line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(sysconfig.get_path("purelib"))
PYTHON = Path("/usr/bin/python3")
UID = 2713


@dataclass(frozen=True)
class Answer:
    """How one command ended, and everything that it printed."""

    code: int
    printed: str


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


def as_stranger(words: Sequence[str | Path]) -> list[str]:
    """Return a command as a user without any rights runs it."""
    return ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", *map(str, words)]


def stranger_environment(home: Path) -> dict[str, str]:
    """Make a home and return the variables of whoever lives there."""
    home.mkdir(exist_ok=True)
    os.chown(home, UID, UID)
    paths = f"{ROOT}:{ROOT / 'tests'}:{SITE}"
    return {
        "PATH": "/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": paths,
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip


def answers_of_a_stranger(folder: Path, home: Path, rows: Sequence[Sequence[str]]) -> list[Answer]:
    """Run commands one after the other in one process of a user without any rights."""
    done = subprocess.run(
        as_stranger([PYTHON, "-m", "support.ordinary_user", json.dumps([*map(list, rows)])]),
        cwd=folder, env={**stranger_environment(home), "COLUMNS": "200"}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return [Answer(code, printed) for code, printed in json.loads(done.stdout)]


def answer(words: Sequence[str]) -> Answer:
    """Run one command in this process, from its words to its exit code."""
    from roundkit.cli import main

    before, sys.argv = sys.argv, ["roundkit", *words]
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main()
        code = 0
    except SystemExit as leave:
        code = int(leave.code or 0)
    finally:
        sys.argv = before
    return Answer(code, said.getvalue())


if __name__ == "__main__":
    ended = [answer(words) for words in json.loads(sys.argv[1])]
    print(json.dumps([(each.code, each.printed) for each in ended]))
