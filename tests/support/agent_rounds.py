"""Rounds whose lanes are filled by stub agents, driven by roundkit's own code in the real boundary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.agent_stubs import Script, stub_folder
from support.killing import plain_repo
from support.synthetic import CampaignRepo

from roundkit.models.attempts import AttemptRecord
from roundkit.models.round_plan import HarnessName
from roundkit.rounds import attempts
from roundkit.rounds.drive import Driven, drive_lanes
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.locks import hold_lock

STUB: dict[str, Any] = {"provenance": "stub"}
MODEL = "stub-model"
TEMPLATE: dict[str, Any] = {"program": "command", "argv": [], "version": None}


@dataclass(frozen=True)
class AgentRound:
    """A launched round with agents, and the folder of their programs."""

    root: Path
    repo: CampaignRepo
    folder: RoundFolder
    tools: Path

    def drive(self, harness: HarnessName | None = None) -> tuple[Driven, list[str]]:
        """Drive lanes while a serve is said to run; return what became of them, and every line."""
        lines: list[str] = []
        with hold_lock(self.folder.serve_lock, code="serve-running", what="serve"):
            return drive_lanes(self.folder, harness=harness, with_serve=False, report=lines.append), lines

    def book(self, lane: str) -> tuple[AttemptRecord, ...]:
        """Return a lane's attempts."""
        return attempts.read_account(self.folder, lane).records

    def only(self, lane: str) -> AttemptRecord:
        """Return a lane's one attempt."""
        [record] = self.book(lane)
        return record


def agent_round(
    root: Path,
    lanes: Mapping[str, HarnessName],
    script: Script,
    *,
    agent: Mapping[str, Any] | None = None,
    lane: Mapping[str, Any] | None = None,
    plan: Mapping[str, Any] | None = None,
    stub: Mapping[str, Any] | None = None,
) -> AgentRound:
    """Launch a round whose lanes are filled by stubs.

    Args:
        root: An empty folder that other users can reach.
        lanes: Harness of each lane.
        script: What each lane's agent does.
        agent: Further keys of every lane's agent.
        lane: Further keys of every lane.
        plan: Further keys of the round.
        stub: How the stubs differ from well-behaved programs.
    """
    tools = stub_folder(root, script, **(stub or {}))
    repo = plain_repo(root, list(lanes))

    def edit(draft: Any) -> None:
        draft.update(plan or {})
        for entry in draft["lanes"]:
            harness = lanes[entry["id"]]
            entry.update(harness=harness, model=MODEL, **(lane or {}))
            if harness in {"claude", "codex", "command"}:
                entry["agent"] = {
                    **STUB,
                    "executable": str(tools / harness),
                    "readable": [str(tools)],
                    **({"command": TEMPLATE} if harness == "command" else {}),
                    **(agent or {}),
                }

    repo.edit_round(edit)
    folder, _ = repo.launched(root / "round")
    return AgentRound(root, repo, folder, tools)
