"""Small pilots for tests: the shipped example, cut down and with agents of a test's own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundkit.core.resources import shipped
from roundkit.core.yamlfile import dump_yaml, load_yaml
from roundkit.models.pilot_plan import PairedPlan
from roundkit.models.pilot_trial import GatewayCall, TrialRecord
from roundkit.pilots.folder import PilotFolder, read_plan
from roundkit.pilots.freeze import freeze_paired

_HEAD = """
import json, os, subprocess, sys, time
sys.path.insert(0, "/pilot/scripts")
from mcp import Server
label, prompt = sys.argv[1], sys.stdin.read()
server = Server(sys.argv[2])
"""
MEND = """
read = server.call("read", path="pages.py")
text = read["stdout"].replace("items // size + 1", "(items + size - 1) // size")
server.call("write", path="pages.py", content=text, expected_sha256=read["sha256"])
"""
"""What an agent does that solves the task ``off-by-one``."""


@dataclass(frozen=True)
class PilotFiles:
    """A pilot as its owner has it, in a folder of its own."""

    root: Path

    @property
    def draft(self) -> Path:
        return self.root / "pilot.yaml"

    def edit(self, change: Callable[[Any], object]) -> None:
        """Change ``pilot.yaml``."""
        content = load_yaml(self.draft.read_bytes(), place="pilot.yaml")
        change(content)
        self.draft.write_bytes(dump_yaml(content))

    def agent(self, body: str) -> None:
        """Let agents do this; ``label`` says which tuple it is, ``server`` is the task's."""
        (self.root / "agents" / "agent.py").write_text(_HEAD + body)

    def freeze(self, name: str = "pilot") -> tuple[PilotFolder, PairedPlan]:
        """Freeze it beside itself."""
        folder = PilotFolder(self.root.parent.resolve() / name)
        freeze_paired(self.draft, folder.root)
        return folder, read_plan(folder)


def example(folder: Path) -> PilotFiles:
    """Copy the shipped example: three tasks, two variants, three repetitions."""
    shutil.copytree(shipped("templates") / "pilot-paired", folder / "files")
    return PilotFiles(folder / "files")


def small(folder: Path, body: str = MEND, *, task: str = "off-by-one", trial_s: float = 60.0) -> PilotFiles:
    """Make a pilot of one task, two variants and one repetition, with agents that do ``body``."""
    files = example(folder)

    def cut(content: Any) -> None:
        content["tasks"] = [row for row in content["tasks"] if row["id"] == task]
        content["repetitions"] = 1
        content["policy"].update(trial_s=trial_s, call_s=60, check_s=60)

    files.edit(cut)
    files.agent(body)
    return files


def calls_of(trial: Path) -> list[GatewayCall]:
    rows = (trial / "calls.jsonl").read_bytes().splitlines()
    return [GatewayCall.from_bytes(row, place="calls.jsonl") for row in rows]


def record_of(trial: Path) -> TrialRecord:
    return TrialRecord.from_bytes((trial / "record.json").read_bytes(), place="record.json")
