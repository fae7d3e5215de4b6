"""Rounds driven by notebooks: one that waits for its close, one from its draft on."""

from __future__ import annotations

import json
import shutil
import urllib.request
from pathlib import Path
from typing import Any

from docs.reading import ROOT
from docs.stage import Stage
from support.cluster import free_port
from support.killing import plain_repo, scene
from support.synthetic import CampaignRepo, knob


def notebooks(stage: Stage) -> None:
    # In a folder of its own, because both rounds are called ../round-01.
    made = scene(stage.root / "first", {"L1": 0.5})
    (stage.root / "first/round").rename(stage.root / "first/round-01")
    _enter(stage, made.repo)
    stage.run("roundkit serve ../round-01 --until-idle")
    port, token = free_port(), "of-this-test"
    _configure_jupyter(stage, port, token)
    stage.on("jupyter lab", until=lambda: _answers(f"http://127.0.0.1:{port}/api/status?token={token}"))
    stage.on("roundkit notebook prepare", before=_begin_replay)
    stage.on("roundkit notebook round_report", before=_name_evidence)
    stage.on(
        "import polars as pl",
        before=lambda stage: shutil.copytree(stage.place / "evidence", stage.place / "campaign/evidence"),
    )


def _enter(stage: Stage, repo: CampaignRepo) -> None:
    stage.place = repo.root
    shutil.copytree(ROOT / "notebooks", repo.root / "notebooks")


def _begin_replay(stage: Stage) -> None:
    """A campaign whose lane is filled from a commit of a branch, and its round beside it."""
    repo = plain_repo(stage.root / "second", ["L1"])
    _enter(stage, repo)
    git = repo.repository
    git.git("switch", "--quiet", "--create", "faster")
    repo.commit({"knobs/L1.json": knob(0.5)})
    git.git("switch", "--quiet", "main")
    lane = {"harness": "replay", "replay": ["faster"]}
    repo.edit_round(lambda draft: draft["lanes"][0].update(lane))
    shutil.copy(repo.round_file, repo.root / "round.yaml")


def _name_evidence(stage: Stage) -> None:
    found = next((stage.place / "evidence").rglob("index.json"))
    stage.names["EVIDENCE_DIR"] = str(found.parent.relative_to(stage.place))


def _configure_jupyter(stage: Stage, port: int, token: str) -> None:
    """What a reader's JupyterLab would have by itself: a browser, and a port that is free."""
    settings: dict[str, Any] = {
        "ServerApp": {"open_browser": False, "allow_root": True, "port": port, "port_retries": 0},
        "IdentityProvider": {"token": token},
    }
    folder = Path(stage.variables["HOME"]) / ".jupyter"
    folder.mkdir()
    (folder / "jupyter_lab_config.json").write_text(json.dumps(settings))


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
