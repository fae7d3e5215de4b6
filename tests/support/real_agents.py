"""Rounds whose lanes are filled by the real command-line agents, which a stub of their provider answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from support.killing import plain_repo
from support.provider_stub import ProviderStub, Shell, Step, Tool, provider_stub
from support.synthetic import CampaignRepo, reachable_folder

from roundkit.models.agent_run import AgentRun
from roundkit.models.attempts import AttemptRecord
from roundkit.models.round_plan import HarnessName
from roundkit.rounds import attempts
from roundkit.rounds.drive import Driven, drive_lanes
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.locks import hold_lock
from roundkit.rules.agent_cost import cost_line

AGENTS = Path(__file__).parent.parent.parent / "build" / "clis" / "agents" / "node_modules"
KEY = "sk-stub-0123456789abcdef"
LIMITS = {
    "output_bytes": 1 << 22,
    "output_kill_bytes": 1 << 26,
    "file_bytes": 1 << 30,
    "disk_bytes": 1 << 30,
    "disk_files": 100_000,
    "open_files": 4096,
    "tmp_bytes": 1 << 28,
}


@dataclass(frozen=True)
class Cell:
    """One lane of a round with real agents: whose, what its model says, and what it may use.

    Attributes:
        script: The steps that its model plays; ``{clone}`` in a command stands for the lane's clone.
        worst: What its attempt may use.
        agent: Further keys of its agent.
    """

    harness: HarnessName
    script: Sequence[Step]
    worst: Mapping[str, int] = field(default_factory=dict)
    agent: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RealRound:
    """A round with real agents, its provider, and what was said while it ran."""

    repo: CampaignRepo
    folder: RoundFolder
    provider: ProviderStub
    said: list[str]

    def drive(self) -> Driven:
        """Drive all lanes at once, while a serve is said to run."""
        with hold_lock(self.folder.serve_lock, code="serve-running", what="serve"):
            return drive_lanes(self.folder, with_serve=False, report=self.said.append)

    def attempt(self, lane: str) -> AttemptRecord:
        """Return a lane's one attempt."""
        [record] = attempts.read_account(self.folder, lane).records
        return record

    def run(self, lane: str) -> AgentRun:
        """Return the record of a lane's one run."""
        run = self.attempt(lane).run
        assert run is not None, self.said
        return run

    def cost(self, lane: str) -> str:
        """Return a lane's cost line."""
        return cost_line(attempts.read_account(self.folder, lane))

    def submitted(self, lane: str) -> int:
        """Count what a lane handed over."""
        return sum(1 for _ in (self.folder.clone(lane) / ".roundkit" / "outbox").iterdir())


def program(harness: str) -> Path:
    """Return a real agent's program, of whatever machine the packages were installed on."""
    pattern = {
        "claude": "@anthropic-ai/claude-code-linux-*/claude",
        "codex": "@openai/codex-linux-*/vendor/*/bin/codex",
    }[harness]
    [found] = AGENTS.glob(pattern)
    return found.resolve()


@contextmanager
def real_round(cells: Mapping[str, Cell]) -> Iterator[RealRound]:
    """Launch a round whose lanes are filled by real agents.

    Args:
        cells: One lane each; lane ``L1`` may change ``knobs/L1.json``.
    """
    with reachable_folder() as root, provider_stub({}) as provider:
        repo = plain_repo(root, list(cells))
        repo.edit_campaign(lambda plan: plan["budget"].update(lanes_per_round=len(cells)))

        def fill(draft: Any) -> None:
            for entry in draft["lanes"]:
                _fill(entry, cells[entry["id"]], provider)

        repo.edit_round(fill)
        folder, _ = repo.launched(root / "round")
        for lane, cell in cells.items():
            provider.scripts[lane] = [_placed(step, str(folder.clone(lane))) for step in cell.script]
        yield RealRound(repo, folder, provider, [])


def _fill(entry: Any, cell: Cell, provider: ProviderStub) -> None:
    claude = cell.harness == "claude"
    address = {"ANTHROPIC_BASE_URL": provider.url} if claude else {"OPENAI_BASE_URL": f"{provider.url}/v1"}
    further = {key: value for key, value in cell.agent.items() if key != "environment"}
    entry.update(
        harness=cell.harness,
        model="claude-sonnet-4-5" if claude else "stub-model",
        attempt_worst_case=dict(cell.worst),
        agent={
            "provenance": "stub",
            "executable": str(program(cell.harness)),
            "hosts": [provider.host],
            "key_variables": ["ANTHROPIC_API_KEY" if claude else "OPENAI_API_KEY"],
            "environment": {**address, **cell.agent.get("environment", {})},
            "limits": dict(LIMITS),
            **further,
        },
    )


def _placed(step: Step, clone: str) -> Step:
    """Return a step with the lane's clone in it."""
    if isinstance(step, Shell):
        return replace(step, command=step.command.replace("{clone}", clone))
    if isinstance(step, Tool):
        filled = {
            key: value.replace("{clone}", clone) if isinstance(value, str) else value
            for key, value in step.input.items()
        }
        return replace(step, input=filled)
    return step
