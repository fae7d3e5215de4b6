"""``submit`` in a large tree, beside ``git status`` there."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.result import Figure, ratio_interval
from support.synthetic import SYSTEM_PYTHON, campaign_repo, reachable_folder

TARGET = 1.5
CHANGED = 5


def measure(tiny: bool) -> Iterator[Figure]:
    """Yield submit's time over that of ``git status``, both after the same five edits."""
    files, rounds = (200, 3) if tiny else (50_000, 21)
    with reachable_folder() as home:
        clone = _lane_clone(home, files)
        wrapper = [str(SYSTEM_PYTHON), str(clone / ".roundkit" / "round"), "submit"]
        status = ["git", "status"]
        _took_s(status, clone)
        ours, theirs = [], []
        for number in range(rounds):
            for place in range(CHANGED):
                (clone / f"src/part{place}/folder0/file{place}.py").write_text(f"value = {number + 1}\n")
            # In turns, so that neither always finds what the other has read just before.
            order = (wrapper, status) if number % 2 else (status, wrapper)
            took = {words[-1]: _took_s(words, clone) for words in order}
            ours.append(took["submit"])
            theirs.append(took["status"])
        assert len(list((clone / ".roundkit" / "outbox").iterdir())) == rounds
    ratio, low, high = ratio_interval(ours, theirs)
    yield Figure(
        "submit", f"`submit` of {CHANGED} files in a tree of {files:,}, over `git status` there", ratio, "x",
        TARGET, detail={
            "interval": (low, high), "rounds": rounds, "files": files,
            "submit_s": statistics.median(ours), "git_status_s": statistics.median(theirs),
        },
    )  # fmt: skip


def _lane_clone(home: Path, files: int) -> Path:
    tree = {
        f"src/part{number % 50}/folder{number // 50 % 20}/file{number}.py": f"value = {-number}\n"
        for number in range(files)
    }

    def edit(draft: Any) -> None:
        draft["lanes"][0].update(globs=["src/**"], submission_cap=1000)

    repo = campaign_repo(home, lanes=("L1",), files=tree)
    repo.edit_round(edit)
    folder, _ = repo.launched(home / "round")
    return folder.clone("L1")


def _took_s(words: Sequence[str], clone: Path) -> float:
    started_s = time.perf_counter()
    done = subprocess.run(words, cwd=clone, capture_output=True, check=True)
    took_s = time.perf_counter() - started_s
    if words[-1] == "submit":
        answer = json.loads(done.stdout)
        assert (answer["submitted"], answer["duplicate"]) == (CHANGED, False)
    return took_s
