"""How long ``roundkit --help`` takes, beside an interpreter that does nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from bench.result import Figure, ratio_interval


def measure(tiny: bool) -> Iterator[Figure]:
    """Yield the ratio; there is no target."""
    rounds = 3 if tiny else 15
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(_took_s([sys.executable, "-m", "roundkit", "--help"]))
        theirs.append(_took_s([sys.executable, "-c", "pass"]))
    ratio, low, high = ratio_interval(ours, theirs)
    yield Figure(
        "startup", "`roundkit --help`, over `python -c pass`", ratio, "x",
        detail={
            "interval": (low, high), "rounds": rounds,
            "help_s": statistics.median(ours), "python_s": statistics.median(theirs),
        },
    )  # fmt: skip


def _took_s(words: Sequence[str]) -> float:
    started_s = time.perf_counter()
    subprocess.run(words, capture_output=True, check=True)
    return time.perf_counter() - started_s
