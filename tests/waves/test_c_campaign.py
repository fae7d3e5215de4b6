"""W01 on real code: the example campaign, drafted by scripts and gated by a compiler, from end to end."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.killing import environment
from support.wave_audits import assert_audits

from roundkit.core.git import Repository
from roundkit.core.resources import shipped
from roundkit.evidence import wave_layout as names
from roundkit.models.wave_records import Rejected
from roundkit.waves.banked import bank_commits
from roundkit.waves.folder import CampaignFolder, open_campaign

_COMMANDS = shipped("templates") / "waves-c" / "commands"


def run(folder: Path, *words: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "roundkit", "waves", *map(str, words)],
        env=environment(folder), capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def right_drafts(campaign: CampaignFolder) -> set[tuple[str, str]]:
    """Return the targets that some wave holds a draft of whose text is the original's."""
    found = set()
    for tag in campaign.tags():
        targets = {target.key: target for target in campaign.read_wave(tag).targets}
        for shard, _ in campaign.shards(tag):
            for key in shard.targets:
                name = f"{key.name}{campaign.plan.plan.draft.suffix}"
                draft = campaign.shard(tag, shard.index) / names.DRAFTS / name
                source = targets[key.group, key.name].data["source"]
                if draft.exists() and draft.read_text() == source:
                    found.add((key.group, key.name))
    return found


def assert_builds(tree: Path, commit: str, scratch: Path) -> None:
    """Check with the compiler that every banked function of a commit is, byte for byte, the original."""
    repository = Repository(tree)
    checkout = scratch / commit
    checkout.mkdir()
    archive = repository.git("archive", commit).stdout
    subprocess.run(["tar", "-x", "-C", checkout], input=archive, check=True)
    for unit in sorted(path.name for path in (checkout / "src").iterdir() if path.is_dir()):
        asked = [path.stem for path in sorted((checkout / "src" / unit).glob("*.c"))]
        request = {"group": unit, "targets": [{"name": name} for name in asked]}
        staging = scratch / f"{commit}-{unit}"
        shutil.copytree(checkout / "src" / unit, staging / "src" / unit)
        source, answer = staging / "input.json", staging / "output.json"
        source.write_text(json.dumps(request))
        gate = [sys.executable, _COMMANDS / "gate.py", source, answer, checkout, staging]
        subprocess.run(gate, check=True, capture_output=True)
        assert json.loads(answer.read_text()) == {"banked": asked, "rejected": {}}


def run_campaign(folder: Path, targets: int) -> CampaignFolder:
    run(folder, "example", folder / "made", "--targets", str(targets))
    plan = folder / "made" / "wave-plan.yaml"
    plan.write_text(plan.read_text().replace("ramp_s: 4 ", "ramp_s: 0 "))
    run(folder, "run", plan, "--dir", folder / "campaign")
    return open_campaign(folder / "campaign")


def assert_campaign(campaign: CampaignFolder, scratch: Path) -> None:
    tree = campaign.tree
    commits = bank_commits(tree, "c-functions")
    banked = [(group, name) for commit in commits for group, name, _ in commit.banked]
    assert sorted(banked) == sorted(right_drafts(campaign))
    assert len(banked) > len(campaign.read_wave("0001").targets)
    rows = campaign.ledger()
    # One row a wave; a wave whose stragglers take longer may be handed on, and gated, after the next one.
    told = sorted((row.tag, row.mode) for row in rows)
    assert told == [(f"{number:04d}", "wave") for number in range(1, 6)]
    assert sum(row.banked for row in rows) == len(banked)
    assert {row.commit for row in rows if row.banked} == {commit.commit for commit in commits}
    assert all(row.traffic is not None and row.traffic.requests > 0 for row in rows)
    for commit in commits:
        assert_builds(tree, commit.commit, scratch)
    refused = rejects(campaign)
    assert any(
        row.stage == "prefilter" and row.reason.startswith("mismatch: it names ext_") for row in refused
    )
    assert any(row.stage == "gate" and "bytes are the same" in row.reason for row in refused)
    assert Repository(tree).dirty_paths() == []
    assert_audits(campaign, scratch)


def rejects(campaign: CampaignFolder) -> list[Rejected]:
    lines = campaign.at(names.REJECTS).read_bytes().splitlines()
    return [Rejected.from_bytes(line, place="rejects") for line in lines]


def test_w01_a_campaign_of_five_waves_banks_exactly_the_right_drafts(
    open_folder: Path, tmp_path: Path
) -> None:
    assert_campaign(run_campaign(open_folder, 20), tmp_path)


@pytest.mark.slow
def test_w01_a_campaign_of_two_hundred_functions_banks_exactly_the_right_drafts(
    open_folder: Path, tmp_path: Path
) -> None:
    assert_campaign(run_campaign(open_folder, 200), tmp_path)
