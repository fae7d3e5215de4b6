"""A round on the reader's own program, with the benchmark of two processes that the page shows."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from docs.programs import calm, edit, faster, fill_globs, fresh_clone, own_program
from docs.stage import Stage
from support.synthetic import commit_all

from roundkit.core.git import Repository

TWO_PROCESSES = {
    "driver": ["{python}", "-s", "-P", "bench/driver.py"],
    "worker": ["{python}", "-s", "-P", "bench/worker.py"],
}


def rounds(stage: Stage) -> None:
    own_program(stage)
    stage.names["BASE"] = "HEAD~1"
    campaign, draft = stage.place / "campaign/campaign.yaml", stage.place / "campaign/round.yaml"
    clone = stage.root / "round-01/lanes/L1"
    stage.on("roundkit init", before=_commit, after=lambda _: _two_processes(campaign))
    stage.on(
        "roundkit prepare --campaign campaign/campaign.yaml --round",
        before=lambda _: fill_globs(draft),
        takes={"DIGEST": r"digest ([0-9a-f]{64})"},
    )
    stage.on("roundkit trial ../round-01 --shell", typed="ls\n")
    stage.on(".roundkit/round submit", before=lambda _: faster(clone), inside="../round-01/lanes/L1")
    stage.on("roundkit replay", before=_stack)
    serving: list[subprocess.Popen[bytes]] = []
    stage.on(
        ".roundkit/round status",
        before=lambda stage: serving.append(stage.start("roundkit serve ../round-01 --until-idle")),
        after=lambda _: serving[0].wait(),
        inside="../round-01/lanes/L1",
    )


def _stack(stage: Stage) -> None:
    fresh_clone(stage)
    # What the benchmark names cannot be replayed, and it is the last commit here.
    Repository(stage.place).git("reset", "--quiet", "--hard", "HEAD~1")


def _commit(stage: Stage) -> None:
    """The benchmark of the page's first section lies in the repository."""
    commit_all(Repository(stage.place), ["bench"], "a benchmark of two processes")


def _two_processes(campaign: Path) -> None:
    """Write the benchmark of two processes into the campaign by hand, as the page says."""
    calm(campaign)

    def change(plan: Any) -> None:
        benchmark = plan["benchmark"]
        del benchmark["argv"]
        benchmark.update(TWO_PROCESSES)
        plan["environment"]["PYTHONPATH"] = "{harness}"
        plan["protected_paths"].append("bench/**")
        # Calls are timed for real: however busy the machine is, the queue is not to pause.
        plan["test_plan"]["drift"].update(limit=1000.0, single_limit=1000.0)

    edit(campaign, change)
