"""The example of a policy pilot, with agents in a hurry and a target that one lane reaches."""

from __future__ import annotations

import json
from pathlib import Path

from docs.programs import edit
from docs.stage import Stage
from support.synthetic import commit_all

from roundkit.core.git import Repository


def pilots_policy(stage: Stage) -> None:
    stage.on("roundkit pilot example", after=lambda stage: _hurry(stage.root / "try"))


def _hurry(example: Path) -> None:
    """Its agents are made to work for minutes; a reader who only looks need not wait for them."""
    plays = {f"L{lane}": [{"work_s": 0.0, "value": 0.6}] for lane in range(1, 5)}
    (example / "program/agents/plays.json").write_text(json.dumps({"every run": plays}))
    incumbent = commit_all(Repository(example / "program"), ["agents"], "agents in a hurry")
    edit(example / "campaign.yaml", lambda plan: plan["search_state"].update(incumbent_revision=incumbent))
    edit(example / "pilot.yaml", lambda draft: draft.update(fraction=0.25, repetitions=3))
