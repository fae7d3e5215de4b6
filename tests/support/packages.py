"""The distributions of roundkit, and an installation that no checkout is near."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent

# Every file that an installed roundkit opens or starts is looked at, in each of its Python processes.
GUARD = """
import os, sys

def _look(event, arguments, root={root!r}, log={log!r}, busy=[]):
    if busy or event not in ("open", "os.listdir", "os.scandir", "subprocess.Popen"):
        return
    named = [arguments[0], *(arguments[1] if event == "subprocess.Popen" else ())]
    for each in named:
        if isinstance(each, (str, bytes, os.PathLike)) and os.fsdecode(each).startswith(root):
            busy.append(True)
            with open(log, "a") as stream:
                stream.write(event + " " + os.fsdecode(each) + "\\n")
            busy.pop()

sys.addaudithook(_look)
"""


def tracked(root: Path) -> list[str]:
    """Return the files that belong to the project: git's, or of an unpacked distribution all."""
    if (root / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
        return [name for name in listed.decode().split("\0") if name and (root / name).is_file()]
    return [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]


@dataclass(frozen=True)
class Built:
    """What was built, and which files the checkout has."""

    wheel: Path
    sdist: Path
    files: frozenset[str]


@dataclass(frozen=True)
class Installed:
    """An environment that holds the wheel and nothing of a checkout, and an empty folder to work in."""

    environment: Path
    folder: Path
    log: Path

    @property
    def python(self) -> Path:
        return self.environment / "bin/python"

    def variables(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        path = f"{self.environment / 'bin'}:/usr/local/bin:/usr/bin:/bin"
        own = {"HOME": str(self.folder / "home"), "ROUNDKIT_LEASE_ROOT": str(self.folder / "leases")}
        return {**kept, **own, "PATH": path, "COLUMNS": "100"}

    def run(self, *words: str | Path, expect: int = 0) -> str:
        """Run the installed command in the empty folder and return what it printed."""
        done = subprocess.run(
            [self.environment / "bin/roundkit", *map(str, words)],
            cwd=self.folder, env=self.variables(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == expect, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        assert not self.log.exists(), f"files of a checkout were used: {self.log.read_text()}"
        return done.stdout + done.stderr


def uv(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "uv", *map(str, words), "--quiet"], check=True)


def build(source: Path, out: Path, *kinds: str) -> None:
    uv("build", *kinds, "--python", sys.executable, "--no-build-isolation", "--out-dir", out, source)


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgSign=false"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True)


def locked(lock: str) -> str:
    """Return the versions of a lock file as constraints, with their markers and without their hashes."""
    versions = [line.rstrip("\\ ") for line in lock.splitlines() if re.match(r"[\w.-]+==", line)]
    return "\n".join(versions)
