"""Wave folders as a drafter leaves them: real git, real plans, drafts laid down by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.killing import environment
from support.synthetic import SYSTEM_PYTHON, commit_all, write_files

from roundkit.core.clock import now_utc
from roundkit.core.git import Repository
from roundkit.core.progress import Progress
from roundkit.evidence import wave_layout as names
from roundkit.models.wave_gate import GateRun
from roundkit.models.wave_records import (
    Drafted,
    LedgerRow,
    Rejected,
    Shard,
    Target,
    TargetKey,
    Wave,
)
from roundkit.waves.banked import bank_commits
from roundkit.waves.folder import CampaignFolder, write_once
from roundkit.waves.freeze import freeze
from roundkit.waves.gater import run_gater

LIMITS = {
    "output_bytes": 65536, "output_kill_bytes": 1 << 20, "file_bytes": 1 << 20, "open_files": 64,
    "tmp_bytes": 1 << 24,
}  # fmt: skip
_TOOL = Path(__file__).with_name("wave_tool.py")


@dataclass(frozen=True)
class WaveCampaign:
    """A campaign of words: ``right GROUP NAME`` is the one right draft of a target."""

    folder: CampaignFolder
    tree: Path

    @property
    def git(self) -> Repository:
        return Repository(self.tree)

    def wave(self, *targets: tuple[str, str], outputs: Mapping[tuple[str, str], str] | None = None) -> str:
        """Draw the next wave."""
        tag = f"{len(self.folder.tags()) + 1:04d}"
        place = self.folder.wave(tag)
        place.mkdir()
        place.chmod(0o711)
        rows = [
            Target(
                group=group, name=name, size=1, input="seed.txt",
                output=(outputs or {}).get((group, name), f"src/{group}/{name}.txt"),
            )
            for group, name in targets
        ]  # fmt: skip
        wave = Wave(
            format="roundkit-wave/1", plan_sha256=self.folder.plan_sha256, tag=tag, drawn_utc=now_utc(),
            band="all", lever_set="plain", targets=tuple(rows), missing_inputs=0, left_out={}, retried=0,
        )  # fmt: skip
        write_once(place / names.WAVE, wave)
        return tag

    def shard(
        self, tag: str, index: int, drafts: Mapping[str, str], *, attempt: int = 1,
        targets: Sequence[tuple[str, str]] | None = None,
    ) -> Path:  # fmt: skip
        """Start a shard, of the whole wave unless targets are given, and lay its drafts down by path."""
        place = self.folder.shard(tag, index)
        place.mkdir(parents=True)
        keys = targets or [target.key for target in self.folder.read_wave(tag).targets]
        shard = Shard(
            tag=tag, index=index, pool="only", model=None, attempt=attempt,
            targets=tuple(TargetKey(group=group, name=name) for group, name in keys), started_utc=now_utc(),
        )  # fmt: skip
        write_once(place / names.SHARD, shard)
        (place / names.DRAFTS).mkdir()
        write_files(place / names.DRAFTS, drafts)
        return place / names.DRAFTS

    def hand_on(self, tag: str) -> None:
        """Write the marker with which a wave passes to the gater."""
        now = now_utc()
        marker = Drafted(tag=tag, began_utc=now, handed_utc=now, workers=2, shards=1, running=0)
        write_once(self.folder.wave(tag) / names.DRAFTED, marker)

    def drafted(self, drafts: Mapping[str, str], *targets: tuple[str, str], **options: Any) -> str:
        """Draw a wave, let one shard draft it, and hand it on."""
        tag = self.wave(*targets, **options)
        self.shard(tag, 0, drafts)
        self.hand_on(tag)
        return tag

    def end_drafting(self) -> None:
        """Leave the word of a drafter that has ended for good."""
        state = {
            "at_utc": "2026-01-01T00:00:00Z", "state": "ended", "reason": "drawn", "credit_usd": 3.5,
            "credit_reason": None,
        }  # fmt: skip
        (self.folder.root / names.DRAFTER).write_text(json.dumps(state))

    def gate(self, progress: Progress | None = None, **options: Any) -> int:
        """Gate in this process, until nothing waits."""
        self.end_drafting()
        return run_gater(self.folder.root, progress=progress or Heard(), **options)

    def gate_until_killed(self, state: str) -> int:
        """Gate in a process that kills itself with SIGKILL when it says a state; return how it ended."""
        self.end_drafting()
        return killed_gater(state, self.folder.root)

    def rows(self) -> list[LedgerRow]:
        return self.folder.ledger()

    def rejects(self) -> list[Rejected]:
        place = self.folder.at(names.REJECTS)
        lines = place.read_bytes().splitlines() if place.exists() else []
        return [Rejected.from_bytes(line, place="rejects") for line in lines]

    def banked(self) -> list[tuple[str, str]]:
        """Every bank of the history, repeated where something was banked twice."""
        commits = bank_commits(self.tree, self.folder.plan.plan.campaign_id)
        return sorted((group, name) for commit in commits for group, name, _ in commit.banked)

    def runs(self, tag: str) -> list[GateRun]:
        found = sorted((self.folder.wave(tag) / names.GATES).glob("*/run.json"))
        return [GateRun.from_bytes(path.read_bytes(), place="run") for path in found]

    def logs(self) -> str:
        """Everything that any gate of any run said."""
        return "".join(path.read_text() for path in sorted(self.folder.root.glob("waves/*/gates/*/logs/g-*")))


def killed_gater(state: str, folder: Path) -> int:
    """Start a gater that kills itself at a state, and return how it ended; 0 where it never came to it."""
    done = subprocess.run(
        [sys.executable, "-m", "support.killed_gater", state, str(folder)],
        env=environment(folder), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode in {0, -9}, done.stdout + done.stderr
    return done.returncode


class Heard(Progress):
    """Keeps what was said."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def wave_campaign(folder: Path, **changes: Any) -> WaveCampaign:
    """Freeze a campaign in an empty folder.

    Args:
        folder: The folder.
        changes: Keys of the plan's ``gate`` and ``commit``, and ``harvest``.
    """
    tree, tools = folder / "tree", folder / "tools"
    tree.mkdir()
    tools.mkdir()
    shutil.copy(_TOOL, tools / "tool.py")
    repository = Repository(tree)
    repository.git("init", "--quiet", "--initial-branch=main")
    write_files(tree, {"seed.txt": "seed\n", "src/config.txt": "line\n" * 10, "lane/other.txt": "theirs\n"})
    commit_all(repository, ["."], "where it starts")
    place = folder / "wave-plan.yaml"
    place.write_text(json.dumps(_plan(changes)))
    return WaveCampaign(freeze(place, folder / "waves"), tree)


def _command(kind: str) -> dict[str, Any]:
    return {"argv": ["{python}", "tool.py", kind, "{input}", "{output}", "{staging}"], "timeout_s": 60.0}


def _plan(changes: Mapping[str, Any]) -> dict[str, Any]:
    gate = {
        "prefilter": _command("prefilter"), "score": _command("score"), "command": _command("gate"),
        "jobs": 2, "expensive_groups": [], "chunk": 8, "parked_groups": [], "limits": LIMITS,
    }  # fmt: skip
    commit = {"paths": ["src/**"], "others": [], "watched": ["src/config.txt"], "least_lines": 0.8}
    draft = {
        "argv": ["true"], "agent": {"provenance": "scripted"}, "turn_tokens": 100, "turns": 2,
        "micro_usd": 0, "attempts": 1, "deadline_s": 10.0, "ramp_s": 0.0, "most_ramp_s": 0.0, "tail": 1.0,
        "grace_s": 0.0, "suffix": ".txt", "limits": LIMITS,
    }  # fmt: skip
    return {
        "format": "roundkit-waves/1", "campaign_id": "words", "tree": "tree", "tools": "tools",
        "python": str(SYSTEM_PYTHON), "draw": _command("draw"), "draft": draft,
        "gate": {**gate, **{key: value for key, value in changes.items() if key in gate}},
        "commit": {**commit, **{key: value for key, value in changes.items() if key in commit}},
        "harvest": changes.get("harvest", _command("harvest")), "targets": 10, "most_groups": 10,
        "bands": [{"id": "all"}], "lever_sets": [{"id": "plain"}], "pools": [{"id": "only", "share": 1}],
        "workers": {
            "start": 1, "most": 1, "step": 1, "sustained_minutes": 3, "least_gain": 0.1, "stalls": 2,
        },
        "queue_depth": 2, "credit_floor_usd": 0.0,
    }  # fmt: skip
