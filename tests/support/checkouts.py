"""Two small checkouts to compare: what they cost is counted, so that verdicts do not hang on the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from support.command_line import run_roundkit
from support.processes import ended_with_test
from support.synthetic import write_files

PYTHON = "/usr/bin/python3 -S -P"
METRIC = ("--metric", "latency_ms")
BENCHMARK = ("--benchmark", f"{PYTHON} bench.py")
SIX = ("--pairs", "6")

BENCH = """\
import json, os, sys
sys.path.insert(0, os.getcwd())
from prog import find
steps = sum(find(number) for number in range(0, 1000, 10))
with open(os.path.join(os.environ["ROUNDKIT_OUTPUT_DIR"], "answer"), "w") as stream:
    stream.write(str(find(7) > 0))
with open(os.environ["ROUNDKIT_RESULT_PATH"], "w") as stream:
    json.dump({"metrics": {"latency_ms": steps / 1000}}, stream)
"""
SLOW = """\
def find(wanted):
    return 1 + next(step for step, number in enumerate(range(1000)) if number == wanted)
"""
FAST = """\
def find(wanted):
    low, high, steps = 0, 1000, 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high, steps = (middle, high, steps + 1) if middle <= wanted else (low, middle, steps + 1)
    return steps
"""
VALIDATE = """\
import os, sys
answer = open(os.path.join(os.environ["ROUNDKIT_OUTPUT_DIR"], "answer")).read()
sys.exit(0 if answer == "True" else "the answer is " + answer)
"""
SHELL_BENCH = """\
steps=$(cat steps.txt)
echo "{\\"metrics\\": {\\"latency_ms\\": $steps}}" > "$ROUNDKIT_RESULT_PATH"
"""
SHELL_BUILD = "wc -c < source.txt > steps.txt\n"
RESTLESS = """\
import random, time
for _ in range(1_500_000):
    pass
time.sleep(0.002 * 1000 ** random.random())
"""
"""Works for a time that is about the same, and sleeps for one that no two runs share: so much longer at
most that a machine on which CPU time scatters by a third still shows which is the quieter."""
FILES = {
    "bench.py": BENCH,
    "validate.py": VALIDATE,
    "prog.py": SLOW,
    "bench.sh": SHELL_BENCH,
    "build.sh": SHELL_BUILD,
    "source.txt": "x" * 40,
    "quiet.sh": "exit 0\n",
    "restless.py": RESTLESS,
    "sleep.sh": "sleep 0.4\n",
    "sleep-long.sh": "exec sleep 600.25\n",
}


@dataclass(frozen=True)
class Ran:
    """One finished command."""

    code: int
    out: str
    err: str

    @property
    def printed(self) -> str:
        return self.out + self.err


@dataclass(frozen=True)
class Bench:
    """A folder with checkouts, and a command line whose leases and temporary files lie in it."""

    root: Path

    def add(self, name: str, **changed: str) -> Path:
        """Make a checkout; ``prog_py="…"`` is the content of ``prog.py``."""
        files = {key.replace("_", "."): text for key, text in changed.items()}
        (self.root / name).mkdir()
        write_files(self.root / name, {**FILES, **files})
        return self.root / name

    @property
    def leases(self) -> Path:
        return self.root / "leases"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    def environment(self, **more: str) -> dict[str, str]:
        for folder in (self.leases, self.temporary):
            folder.mkdir(exist_ok=True)
        self.temporary.chmod(0o711)
        own = {"ROUNDKIT_LEASE_ROOT": str(self.leases), "TMPDIR": str(self.temporary)}
        return {**os.environ, **own, **more}

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        return ended_with_test(subprocess.Popen(
            argv(*words), cwd=self.root, env=self.environment(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        ))  # fmt: skip

    def run(self, *words: str | Path, expect: int, **more: str) -> Ran:
        """Run roundkit to its end, without a traceback and without leaving anything in temporary folders."""
        done = run_roundkit(*words, cwd=self.root, env=self.environment(**more))
        ran = Ran(done.returncode, done.stdout, done.stderr)
        assert ran.code == expect, ran.printed
        assert "Traceback" not in ran.printed
        assert not list(self.temporary.glob("roundkit-measure-*"))
        return ran

    def saved(self, name: str) -> dict[str, object]:
        document: dict[str, object] = json.loads((self.root / name).read_bytes())
        return document


def two_alike(folder: Path) -> Bench:
    """Make checkouts ``a`` and ``b``, the same."""
    made = Bench(folder)
    made.add("a")
    made.add("b")
    return made


def argv(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "roundkit", *map(str, words)]
