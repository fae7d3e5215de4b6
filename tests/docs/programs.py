"""Programs, campaigns and rounds that the readers of several pages have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from docs.stage import Stage
from support.synthetic import commit_all, write_files

from roundkit.core.git import Repository
from roundkit.core.yamlfile import dump_yaml, load_yaml

ENGINE = """\
import time


def search(request):
    time.sleep({seconds})
    return [word for word in ("one", "two", "three") if word in request["query"]]
"""
BENCH = """\
import json, os, sys
sys.path.insert(0, os.getcwd())
from mypackage.engine import search
import mypackage.engine, inspect
answer = search({"query": "two of three"})
with open(os.path.join(os.environ["ROUNDKIT_OUTPUT_DIR"], "answer.json"), "w") as stream:
    json.dump(answer, stream)
# What counts is what the source says, so that no verdict hangs on the machine.
seconds = float(inspect.getsource(mypackage.engine.search).split("sleep(")[1].split(")")[0])
with open(os.environ["ROUNDKIT_RESULT_PATH"], "w") as stream:
    json.dump({"metrics": {"latency_ms": 1000 * seconds}}, stream)
"""
CHECK = """\
import os, sys
sys.exit(0 if os.listdir(os.environ["ROUNDKIT_OUTPUT_DIR"]) else "there is no answer")
"""
SLOW, NOW, FAST = 0.2, 0.05, 0.02
"""Seconds that a search takes: before the last commit, now, and with a lane's change."""


def engine(seconds: float) -> str:
    """Return the part of the program that is slow."""
    return ENGINE.format(seconds=seconds)


def own_program(stage: Stage) -> None:
    """Make the reader's place a repository with a benchmark, whose last commit made it faster."""
    files = {
        "mypackage/__init__.py": "",
        "mypackage/engine.py": engine(SLOW),
        "mypackage/words.py": "WORDS = 3\n",
        "bench.py": BENCH,
        "check.py": CHECK,
    }
    repository = Repository(stage.place)
    repository.git("init", "--quiet", "--initial-branch=main")
    write_files(stage.place, files)
    commit_all(repository, ["."], "a slow program")
    repository.git("tag", "first")
    write_files(stage.place, {"mypackage/words.py": "WORDS = 4\n"})
    commit_all(repository, ["."], "one more word")
    write_files(stage.place, {"mypackage/engine.py": engine(NOW)})
    commit_all(repository, ["."], "a faster search")


def fresh_clone(stage: Stage) -> None:
    """Go on as another reader, whose repository holds no campaign yet."""
    Repository(stage.root).git("clone", "--quiet", str(stage.root / "program"), str(stage.root / "another"))
    stage.place = stage.root / "another"


def edit(path: Path, change: Callable[[Any], object]) -> None:
    """Change a YAML file as its owner would; comments stay."""
    content = load_yaml(path.read_bytes(), place=path.name)
    change(content)
    path.write_bytes(dump_yaml(content))


def calm(campaign: Path) -> None:
    """Let the benchmark's own figure decide, in as few pairs as there may be."""

    def change(plan: Any) -> None:
        plan["metric"].update(name="latency_ms", unit="ms", direction="lower")
        plan["benchmark"].update(instrument="reported", clock_tolerance=None)
        plan["test_plan"].update(ab_ba_pairs=6, repetitions=1, min_gain=0.01, noise=None)

    edit(campaign, change)


def fill_globs(draft: Path) -> None:
    """Say which files the lanes of a draft may change."""
    edit(draft, lambda plan: [lane.update(globs=["mypackage/engine.py"]) for lane in plan["lanes"]])


def faster(clone: Path) -> None:
    """Do a lane's work."""
    (clone / "mypackage/engine.py").write_text(engine(FAST))
