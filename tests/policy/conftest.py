"""A small policy pilot: the shipped example, with a target that one lane reaches and agents in a hurry."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.synthetic import commit_all

from roundkit.core.git import Repository
from roundkit.core.yamlfile import dump_yaml, load_yaml
from roundkit.models.policy_plan import PolicyPlan
from roundkit.pilots.policy.example import write_example
from roundkit.pilots.policy.prepare import prepare_policy

HURRIED = {
    "every run": {
        "L1": [{"work_s": 0.0, "value": 0.6}],
        "L2": [{"work_s": 0.0, "value": 0.5}],
        "L3": [{"work_s": 0.0, "value": 0.5}],
        "L4": [{"work_s": 0.0, "value": 0.4}],
    }
}


@dataclass(frozen=True)
class SmallPilot:
    """The owner's files of a small pilot, and where its folder goes."""

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / "pilot"

    @property
    def pilot_file(self) -> Path:
        return self.root / "pilot.yaml"

    def edit(self, name: str, edit: Callable[[Any], object]) -> None:
        """Change one of the owner's files as an editor would."""
        path = self.root / name
        content = load_yaml(path.read_bytes(), place=name)
        edit(content)
        path.write_bytes(dump_yaml(content))

    def play(self, plays: Mapping[str, Any]) -> None:
        """Give the scripted agents another script, in a new I0."""
        program = self.root / "program"
        (program / "agents/plays.json").write_text(json.dumps(plays))
        incumbent = commit_all(Repository(program), ["agents"], "another script")
        self.edit("campaign.yaml", lambda plan: plan["search_state"].update(incumbent_revision=incumbent))

    def prepare(self) -> PolicyPlan:
        return prepare_policy(self.pilot_file, self.folder)


@pytest.fixture
def small_pilot(open_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallPilot:
    """The example with a target that lane L1 reaches by itself, and leases of the test's own."""
    monkeypatch.setenv("ROUNDKIT_LEASE_ROOT", str(tmp_path / "leases"))
    write_example(open_folder / "example", repetitions=3)
    pilot = SmallPilot(open_folder / "example")
    pilot.play(HURRIED)
    pilot.edit("pilot.yaml", lambda draft: draft.update(fraction=0.25))
    return pilot
