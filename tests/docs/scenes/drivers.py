"""Rounds whose agents are stubs of Claude Code and Codex, found on the reader's PATH like the real ones."""

from __future__ import annotations

import os
from pathlib import Path

from docs.reading import Block
from docs.stage import Stage
from support.agent_rounds import agent_round
from support.agent_stubs import Script
from support.synthetic import knob

from roundkit.models.round_plan import HarnessName

KEYS = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY"}


def drivers(stage: Stage) -> None:
    for name in KEYS:
        stage.variables[KEYS[name]] = "sk-a-key-of-this-test"
    stage.names["ROUND_DIR"] = str(_round(stage, "both", {"L1": "claude", "L2": "codex"}))
    for harness in KEYS:
        stage.on(f"{harness} ", check=_flags_are_shown)
    stage.on("npm install --global @anthropic-ai/claude-code", before=lambda stage: _alone(stage, "claude"))
    stage.on("npm install --global @openai/codex", before=lambda stage: _alone(stage, "codex"))


def _alone(stage: Stage, harness: HarnessName) -> None:
    stage.names["../round-01"] = str(_round(stage, harness, {"L1": harness}))
    stage.said.append(stage.run(stage.filled(f"roundkit launch ../round-01 --drive {harness} --dry-run")))


def _round(stage: Stage, name: str, lanes: dict[str, HarnessName]) -> Path:
    script: Script = {
        lane: [[{"write": {f"knobs/{lane}.json": knob(0.5)}}, {"submit": True}]] for lane in lanes
    }
    (stage.root / name).mkdir(mode=0o711)
    agent = {"executable": None, "effort": "medium", "key_variables": [KEYS[each] for each in lanes.values()]}
    lane = {"attempt_worst_case": {"turns": 9, "micro_usd": 1_000_000, "wall_s": 60}}
    made = agent_round(stage.root / name, lanes, script, agent=agent, lane=lane)
    stage.variables["PATH"] = os.pathsep.join([str(made.tools), stage.variables["PATH"]])
    return made.folder.root


def _flags_are_shown(block: Block, said: str) -> None:
    flags = [word for word in block.text.split() if word.startswith("-")]
    missing = [flag for flag in flags if f" {flag} " not in said.replace("\n", " ")]
    assert not missing, f"{block.place}: no dry run shows {missing}\n{said}"
