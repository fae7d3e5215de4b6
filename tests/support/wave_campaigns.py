"""A campaign of waves for tests: a real tree, real commands, draft agents that are scripted."""

from __future__ import annotations

import json
import os
import shutil
import textwrap
import threading
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.synthetic import SYSTEM_PYTHON, commit_all, write_files
from support.wave_provider import WaveProvider

from roundkit.core.clock import now_utc
from roundkit.core.git import Repository
from roundkit.core.progress import PlainProgress
from roundkit.core.resources import shipped
from roundkit.core.yamlfile import dump_yaml
from roundkit.evidence import wave_layout as names
from roundkit.models.wave_records import LedgerRow
from roundkit.rounds.stopping import StopRequest
from roundkit.waves import locks
from roundkit.waves.agent_place import inherited_values
from roundkit.waves.drafter import Drafter
from roundkit.waves.folder import CampaignFolder
from roundkit.waves.freeze import freeze
from roundkit.waves.shard_run import AgentSetting
from roundkit.waves.telemetry import append

DRAW = """
import json, sys
from pathlib import Path

request = json.loads(Path(sys.argv[1]).read_text())
rows = json.loads((Path(sys.argv[3]) / "targets.json").read_text())
under = request["under"] or float("inf")
inside = [row for row in rows if request["at_least"] <= row["size"] < under]
Path(sys.argv[2]).write_text(json.dumps({"targets": inside}))
"""
CREDIT = """
import os, sys, urllib.request
from pathlib import Path

with urllib.request.urlopen(os.environ["PROVIDER_URL"] + "/credit") as reply:
    Path(sys.argv[1]).write_bytes(reply.read())
"""
PREFILTER = """
import json, sys
from pathlib import Path

request = json.loads(Path(sys.argv[1]).read_text())
results = []
for draft in request["drafts"]:
    text = (Path(request["folder"]) / draft["path"]).read_text()
    status = "agree" if "helper" in text else "mismatch"
    results.append({**{key: draft[key] for key in ("group", "name", "sha256")}, "status": status})
Path(sys.argv[2]).write_text(json.dumps({"results": results}))
"""
GATE = """
import json, sys, time
from pathlib import Path

request = json.loads(Path(sys.argv[1]).read_text())
right = []
for target in request["targets"]:
    time.sleep(target["data"].get("gate_s", 0))
    if (Path(sys.argv[3]) / target["output"]).read_text() == target["data"]["source"]:
        right.append(target["name"])
Path(sys.argv[2]).write_text(json.dumps({"banked": right}))
"""
LIMITS = {
    "output_bytes": 65536, "output_kill_bytes": 1 << 20, "file_bytes": 1 << 20, "open_files": 64,
    "tmp_bytes": 1 << 20,
}  # fmt: skip


WORKERS = {
    "start": 3, "most": 8, "step": 2, "sustained_minutes": 3, "least_gain": 0.1, "stalls": 2,
}  # fmt: skip


def target(name: str, group: str = "a", **more: Any) -> dict[str, Any]:
    """Return a target whose draft is right; ``plays`` and the rest of its data are given by name."""
    own = {key: more.pop(key) for key in ("size", "family", "input", "output") if key in more}
    source = f"int {name}(int x) {{ return helper(x) + {len(name)}; }}\n"
    data = {
        "source": source, "symbol": "helper", "other_symbol": "helped", "body": "+", "other_body": "-",
        **more,
    }  # fmt: skip
    return {
        "group": group, "name": name, "size": 10, "family": None, "input": f"asm/{group}/{name}.s",
        "output": f"src/{group}/{name}.c", "data": data, **own,
    }  # fmt: skip


@dataclass
class WaveCampaign:
    """A campaign before and after it is frozen."""

    root: Path
    targets: list[dict[str, Any]]
    plan: dict[str, Any]
    directory: Path
    _folder: list[CampaignFolder] = field(default_factory=list)

    @property
    def tree(self) -> Path:
        return self.root / "tree"

    @property
    def plan_file(self) -> Path:
        return self.root / "wave-plan.yaml"

    @property
    def folder(self) -> CampaignFolder:
        """The frozen campaign."""
        if not self._folder:
            self._folder.append(freeze(self.plan_file, self.directory))
        return self._folder[0]

    def write_plan(self, **changes: Any) -> Path:
        """Write the plan with some of its keys changed; a nested one is ``draft={...}``."""
        for key, value in changes.items():
            known = self.plan.get(key)
            self.plan[key] = (
                {**known, **value} if isinstance(known, dict) and isinstance(value, Mapping) else value
            )
        self.plan_file.write_bytes(dump_yaml(self.plan))
        return self.plan_file

    def ask(self, provider: WaveProvider, *, credit: bool = False) -> None:
        """Have the draft agents ask a provider for each draft, and the campaign for its credit."""
        command = {"argv": ["{python}", "credit.py", "{output}"], "timeout_s": 30}
        self.write_plan(
            draft={
                "agent": {
                    "provenance": "stub", "hosts": [provider.host],
                    "environment": {"PROVIDER_URL": provider.url},
                },
            },
            credit=command if credit else None,
        )  # fmt: skip

    @contextmanager
    def drafting(self, *, banked: AbstractSet[tuple[str, str]] = frozenset()) -> Iterator[Drafting]:
        """Run the drafter beside a block, at whose end it is stopped if it still runs."""
        drafting = Drafting(self, banked)
        drafting.start()
        try:
            yield drafting
        finally:
            drafting.asked.set()
            drafting.join()
        if drafting.error is not None:
            raise drafting.error

    def draft(self, **options: Any) -> list[str]:
        """Run the drafter to its end and return what it said."""
        with self.drafting(**options) as drafting:
            drafting.join()
        assert drafting.code == 0, drafting.lines
        return drafting.lines

    def gated(self, tag: str, banked: int = 0) -> None:
        """Write a wave's row, as the gater does."""
        wave = self.folder.read_wave(tag)
        row = LedgerRow(
            format="roundkit-wave-row/1", plan_sha256=self.folder.plan_sha256, tag=tag, mode="wave",
            provenance="scripted", began_utc=None, gated_utc=now_utc(), wall_s=None, gate_s=0.0, workers=None,
            band=wave.band, lever_set=wave.lever_set, targets=len(wave.targets), drafts=0,
            truncated_turns=None, unresolved=0, prefilter={}, gated=0, banked=banked, commit=None,
            credit_usd=None,
            credit_reason="a test", harvest="none", traffic=None, decision=None,
        )  # fmt: skip
        append(self.folder.at(names.LEDGER), row.to_bytes() + b"\n")

    def drafts(self, tag: str) -> dict[str, str]:
        """Return the drafts of a wave by their names; of several at one target the last."""
        found = sorted(self.folder.wave(tag).glob(f"{names.SHARDS}/*/{names.DRAFTS}/*.c"))
        return {path.stem: path.read_text() for path in found}


class Drafting(threading.Thread):
    """A drafter in a thread of its own."""

    def __init__(self, campaign: WaveCampaign, banked: AbstractSet[tuple[str, str]]) -> None:
        super().__init__(name="drafter")
        self.lines: list[str] = []
        self.asked = StopRequest()
        self.code: int | None = None
        self.error: BaseException | None = None
        folder = campaign.folder
        self._folder = folder
        self._drafter = Drafter(
            folder,
            AgentSetting.of(folder, inherited_values(folder.plan, os.environ)),
            lambda _: banked,
            PlainProgress(self.lines.append),
            self.asked,
        )

    def run(self) -> None:
        try:
            with locks.hold(self._folder, "drafter"):
                self.code = self._drafter.run()
        except BaseException as error:
            self.error = error

    def said(self, words: str) -> bool:
        """Say whether a line with these words was said; a drafter that broke is an error."""
        assert self.error is None, self.lines
        return any(words in line for line in self.lines)


def wave_campaign(root: Path, named: Sequence[Mapping[str, Any]], /, **changes: Any) -> WaveCampaign:
    """Make a tree, tools and a plan in a folder; the plan's defaults are small and quick.

    Args:
        root: An empty folder that other users can pass.
        named: What the tree's ``targets.json`` lists, in this order; each one's input is made.
        changes: Keys of the plan.
    """
    rows = [dict(one) for one in named]
    tree, tools = root / "tree", root / "tools"
    tree.mkdir(mode=0o755, parents=True)
    inputs = {row["input"]: f"{row['name']}:\n" for row in rows if not row["data"].get("no_input")}
    write_files(tree, {"targets.json": json.dumps(rows), "src/README": "banked drafts\n", **inputs})
    repository = Repository(tree)
    repository.git("init", "--quiet", "--initial-branch=main")
    commit_all(repository, ["."], "the tree")
    shutil.copytree(shipped("templates") / "waves-c" / "agents", tools / "agents")
    (tools / "draw.py").write_text(textwrap.dedent(DRAW))
    (tools / "prefilter.py").write_text(textwrap.dedent(PREFILTER))
    (tools / "gate.py").write_text(textwrap.dedent(GATE))
    (tools / "credit.py").write_text(textwrap.dedent(CREDIT))
    command = {"argv": ["{python}", "draw.py", "{input}", "{output}", "{tree}"], "timeout_s": 60}
    campaign = WaveCampaign(root, rows, {
        "format": "roundkit-waves/1", "campaign_id": "test", "tree": "tree", "tools": "tools",
        "python": str(SYSTEM_PYTHON) if SYSTEM_PYTHON.exists() else "auto",
        "draw": command,
        "draft": {
            "argv": ["{python}", "agents/scripted.py", "{input}", "{output}", ".c"],
            "agent": {"provenance": "scripted"},
            "turn_tokens": 8000, "turns": 24, "micro_usd": 150000, "attempts": 1, "deadline_s": 60,
            "ramp_s": 0.0, "most_ramp_s": 0.0, "tail": 0.8, "grace_s": 120, "suffix": ".c", "limits": LIMITS,
        },
        "gate": {
            "prefilter": {"argv": ["{python}", "prefilter.py", "{input}", "{output}"], "timeout_s": 60},
            "command": {"argv": ["{python}", "gate.py", "{input}", "{output}", "{staging}"], "timeout_s": 60},
            "jobs": 2, "chunk": 8, "limits": LIMITS,
        },
        "commit": {"paths": ["src/**"], "least_lines": 0.8},
        "waves": 1, "targets": 10, "most_groups": 10,
        "bands": [{"id": "all"}], "lever_sets": [{"id": "plain"}],
        "pools": [{"id": "one", "model": "stub-1", "share": 1}],
        "workers": WORKERS,
        "queue_depth": 2, "credit_floor_usd": 2.0,
    }, root / "campaign")  # fmt: skip
    campaign.write_plan(**changes)
    return campaign
