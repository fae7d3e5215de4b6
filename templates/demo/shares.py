"""Print each stage's own share of the program's time, without the stages that it calls.

Run from anywhere: ``python templates/demo/shares.py``. The requests are those of a real trial.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

from figures import DEMO, run_trial

STAGES = (
    ("tokenize", "searchkit.index", "tokenize"),
    ("tokenize", "searchkit.query", "tokenize"),
    ("index", "searchkit.engine", "build_index"),
    ("rank: rarity of terms", "searchkit.stats", "Statistics.rarity"),
    ("rank: the rest", "searchkit.engine", "rank"),
    ("render", "searchkit.engine", "render"),
)
REQUESTS = 20


class Stopwatch:
    """Counts the time that each stage spends itself."""

    def __init__(self) -> None:
        self.own_s = dict.fromkeys((stage for stage, _, _ in STAGES), 0.0)
        self._inner_s = [0.0]

    def watch(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same and counts its time for a stage."""

        @wraps(function)
        def watched(*arguments: Any) -> Any:
            self._inner_s.append(0.0)
            started_s = time.perf_counter()
            answer = function(*arguments)
            spent_s = time.perf_counter() - started_s
            self.own_s[stage] += spent_s - self._inner_s.pop()
            self._inner_s[-1] += spent_s
            return answer

        return watched


def requests(folder: Path) -> list[dict[str, Any]]:
    """Return the requests of a real trial, one a repetition."""
    trial = run_trial(DEMO / "program", folder / "trial", seed=1, repetitions=REQUESTS)
    saved = (json.loads(file.read_text()) for file in sorted(trial.output_dir.glob("repetition-*.json")))
    return [output["request"] for output in saved]


def install(stopwatch: Stopwatch) -> None:
    """Put the stopwatch around every stage."""
    for stage, module, name in STAGES:
        *path, attribute = name.split(".")
        owner: Any = import_module(module)
        for part in path:
            owner = getattr(owner, part)
        setattr(owner, attribute, stopwatch.watch(stage, getattr(owner, attribute)))


def main() -> None:
    """Answer the requests and print the shares, each the median over the requests."""
    sys.dont_write_bytecode = True
    sys.path.append(str(DEMO / "program"))
    stopwatch = Stopwatch()
    install(stopwatch)
    search_all: Callable[[dict[str, Any]], Any] = import_module("searchkit.engine").search_all
    shares: dict[str, list[float]] = {stage: [] for stage in stopwatch.own_s}
    with tempfile.TemporaryDirectory(prefix="searchkit-") as folder:
        for request in requests(Path(folder)):
            before_s = dict(stopwatch.own_s)
            started_s = time.perf_counter()
            search_all(request)
            total_s = time.perf_counter() - started_s
            for stage, own_s in stopwatch.own_s.items():
                shares[stage].append((own_s - before_s[stage]) / total_s)
    print("| stage | share |\n| --- | --- |")
    for stage, samples in shares.items():
        print(f"| {stage} | {statistics.median(samples):.1%} |")


if __name__ == "__main__":
    main()
