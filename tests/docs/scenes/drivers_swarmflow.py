"""Rounds of a team whose workers are scripted, and a package that plays the engine."""

from __future__ import annotations

from pathlib import Path

from docs.stage import Stage
from support.agent_rounds import STUB, TEMPLATE, agent_round
from support.killing import plain_repo
from support.stub_engine import stub_engine
from support.synthetic import knob


def drivers_swarmflow(stage: Stage) -> None:
    engine = stub_engine(stage.root)
    stage.names.update(ROUND_DIR=str(_team(stage, "first")), FOLDER=str(engine))
    stage.on("roundkit swarmflow ROUND_DIR --hand-over", before=lambda stage: _next(stage, "second"))
    stage.on("pip install", before=lambda stage: engine.rename(stage.place / "swarmflow-engine"))
    stage.names["../round-01"] = str(_team(stage, "third"))
    stage.names["WORKSPACE"] = str(stage.root / "workspace")
    stage.on("roundkit launch ROUND_DIR --round-root", before=_not_launched)


def _next(stage: Stage, name: str) -> None:
    stage.names["ROUND_DIR"] = str(_team(stage, name))


def _not_launched(stage: Stage) -> None:
    """A round that is frozen alone, and the workspace of a team."""
    (stage.root / "workspace").mkdir(mode=0o755)
    repo = plain_repo(stage.root / "fourth", ["L1"])
    repo.freeze(stage.root / "fourth/round")
    stage.names["ROUND_DIR"] = str(stage.root / "fourth/round")


def _team(stage: Stage, name: str) -> Path:
    root = stage.root / name
    root.mkdir(mode=0o711)
    tools = root / "tools"
    agent = {**STUB, "executable": str(tools / "command"), "readable": [str(tools)], "command": TEMPLATE}
    script = {"L1": [[{"write": {"knobs/L1.json": knob(0.2)}}, {"submit": True}]]}
    lane = {"agent": agent, "attempts": 3, "attempt_worst_case": {"wall_s": 60}}
    return agent_round(root, {"L1": "swarmflow"}, script, lane=lane).folder.root
