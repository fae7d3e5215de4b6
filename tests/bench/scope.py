"""The scope check of ``prepare``: lanes, protected paths and overlaps over a large tree."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from statistics import median
from types import SimpleNamespace
from typing import Any, cast

from bench.result import Figure

from roundkit.core.globs import PathIndex
from roundkit.models.round_plan import LaneBudget
from roundkit.rules.lane_refusals import lane_refusals
from roundkit.rules.round_facts import RoundFacts
from roundkit.rules.scope import TRICK_FILES

LANES = 8
TARGET_S = 3.0
PROTECTED = ("bench/**", "tools/validate.py", "campaign.yaml", *TRICK_FILES)


def measure(tiny: bool) -> Iterator[Figure]:
    """Yield the time of one check over 1,000,000 paths, the median of five."""
    files, times = (2_000, 1) if tiny else (1_000_000, 5)
    tree = paths(files)
    took_s = sorted(_checked(tree) for _ in range(times))
    yield Figure(
        "scope", f"scope check of {LANES} lanes over {files:,} paths", median(took_s), "s", TARGET_S,
        detail={
            "files": files, "lanes": LANES, "protected_globs": len(PROTECTED),
            "interval": [took_s[0], took_s[-1]],
        },
    )  # fmt: skip


def _checked(tree: list[str]) -> float:
    started_s = time.perf_counter()
    # As prepare does it: from the paths that git names to the list of refusals.
    found = lane_refusals(facts(PathIndex(tree)))
    took_s = time.perf_counter() - started_s
    assert [refusal.code for refusal in found] == ["scope-overlap"]
    return took_s


def paths(files: int) -> list[str]:
    """Return the files of a tree in git's order: modules of eight parts, with tests, docs and kernels."""
    ends = ("impl.py", "kernels.cu", "api.h", "notes.md", "Test_cases.py")
    names = [
        f"src/part{number % LANES}/module{number // LANES % 50}/unit{number // 400 % 50}/"
        f"file_{number:07d}_{ends[number % len(ends)]}"
        for number in range(files)
    ]
    return sorted([*names, "bench/run.py", "tools/validate.py", "campaign.yaml", "src/part0/conftest.py"])


def facts(index: PathIndex) -> RoundFacts:
    """Return a round of eight lanes, two of which overlap in one file."""
    shared = str(next(path for path in index if path.startswith("src/part7/")))
    lanes = [
        _lane(number, [f"src/part{number}/**/*.py", f"src/part{number}/*/unit*/*.cu", f"src/part{number}/*/"])
        for number in range(1, LANES)
    ]
    lanes.append(_lane(0, [shared, "src/part0/module0/", "src/part0/**/*.cu"]))
    campaign = SimpleNamespace(
        budget=SimpleNamespace(lanes_per_round=LANES), search_plan=[_entry(n) for n in range(LANES)],
        negative_memory=[],
    )  # fmt: skip
    return RoundFacts(
        campaign=cast("Any", campaign), draft=cast("Any", SimpleNamespace(lanes=lanes)),
        now=datetime.now(UTC), paths=index, protected=PROTECTED, cores=frozenset({0}),
        campaign_at=lambda *keys: ".".join(map(str, keys)), round_at=lambda *keys: ".".join(map(str, keys)),
    )  # fmt: skip


def _lane(number: int, globs: list[str]) -> Any:
    return SimpleNamespace(
        id=f"L{number}", entry=f"E{number}", globs=globs, creates=False, harness="none", replay=(),
        budget=LaneBudget(), attempt_worst_case=LaneBudget(), changed_condition=None,
        deadline_utc=datetime.now(UTC) + timedelta(days=1),
    )  # fmt: skip


def _entry(number: int) -> Any:
    return SimpleNamespace(id=f"E{number}", plane="algorithm", status="planned")
