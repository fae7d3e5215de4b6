"""Both halves together, as `roundkit waves run` starts them."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from support.killing import run_to_end, start, wait_for
from support.wave_audits import assert_audits
from support.wave_campaigns import WaveCampaign, target, wave_campaign
from support.wave_provider import wave_provider

from roundkit.core.git import Repository
from roundkit.evidence import wave_layout
from roundkit.rounds.locks import describe_holder
from roundkit.waves import locks
from roundkit.waves.status import read_status


def run_words(campaign: WaveCampaign) -> tuple[str | Path, ...]:
    return ("waves", "run", campaign.plan_file, "--dir", campaign.directory)


def files(campaign: WaveCampaign) -> dict[str, str]:
    """Return what HEAD has below ``src``."""
    repository = Repository(campaign.tree)
    paths = [path for path in repository.paths("HEAD") if path.startswith("src/") and path.endswith(".c")]
    return {path: repository.read_blob("HEAD", path).decode() for path in paths}


def test_w01_both_halves_bank_exactly_what_is_right(open_folder: Path) -> None:
    parts = ["right", "wrong-symbol", "wrong-body", "truncated", "crashing", "right"]
    targets = [
        target(f"f{number}", group, plays=parts[(number + shift) % len(parts)])
        for shift, group in enumerate(("a", "b"))
        for number in range(9)
    ]
    campaign = wave_campaign(open_folder, targets, waves=3, targets=8)
    campaign.write_plan(workers={"start": 4, "most": 4})
    said = run_to_end(open_folder / "leases", *run_words(campaign))
    assert "drafter finished" in said
    assert "gater finished" in said
    drawn = {one.key for tag in campaign.folder.tags() for one in campaign.folder.read_wave(tag).targets}
    right = {
        row["output"]: row["data"]["source"]
        for row in targets
        if row["data"]["plays"] == "right" and (row["group"], row["name"]) in drawn
    }
    banked = files(campaign)
    # A crashing neighbour may cost a target its draft; nothing wrong is ever banked.
    assert banked.items() <= right.items()
    drafted = {name for tag in campaign.folder.tags() for name in drafts_of(campaign, tag)}
    assert set(banked) == {output for output in right if output in drafted}
    rows = campaign.folder.ledger()
    assert [(row.tag, row.mode) for row in rows] == [("0001", "wave"), ("0002", "wave"), ("0003", "wave")]
    assert sum(row.banked for row in rows) == len(banked)
    assert all(row.traffic is not None and row.decision is not None for row in rows)
    status = json.loads(run_to_end(open_folder / "leases", "waves", "status", campaign.directory, "--json"))
    assert [wave["state"] for wave in status["waves"]] == ["gated"] * 3
    assert status["queue"] == []
    assert status["drafter"]["reason"] == "waves"


def drafts_of(campaign: WaveCampaign, tag: str) -> set[str]:
    """Return the outputs of a wave's targets that somebody drafted."""
    owners = {}
    for shard, _ in campaign.folder.shards(tag):
        drafts = campaign.folder.shard(tag, shard.index) / "drafts"
        names = {path.stem for path in drafts.iterdir()}
        owners.update({f"src/{key.group}/{key.name}.c": key for key in shard.targets if key.name in names})
    return set(owners)


@pytest.mark.slow
def test_w09_the_fleet_is_busy_beside_a_slow_gate(open_folder: Path) -> None:
    waves, per_wave = 4, 4
    targets = [
        target(f"f{n}", plays="slow", seconds=1.0 + 0.5 * (n % per_wave), gate_s=1.0)
        for n in range(waves * per_wave)
    ]
    campaign = wave_campaign(open_folder, targets, waves=waves, targets=per_wave, queue_depth=3)
    campaign.write_plan(draft={"tail": 0.5}, workers={"start": 4, "most": 4})
    run_to_end(open_folder / "leases", *run_words(campaign))
    use = read_status(campaign.folder).fleet
    rows = campaign.folder.ledger()
    # The gate of one wave takes longer than its slowest agent.
    assert all(row.gate_s > 2.5 for row in rows)
    assert use.idle_share is not None
    assert use.idle_share < 0.05, use
    assert sum(row.banked for row in rows) == waves * per_wave


def test_the_death_of_a_half_leaves_the_other_running_and_is_told(open_folder: Path) -> None:
    with wave_provider() as provider:
        provider.hold("f5")
        campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(6)], waves=2, targets=3)
        campaign.ask(provider)
        leases = open_folder / "leases"
        both = start(leases, *run_words(campaign))
        provider.wait_for_request("f5")
        folder = campaign.folder
        wait_for(lambda: len(folder.ledger()) == 1, "the first wave's row")
        gater = int(describe_holder(folder.at(wave_layout.GATER_LOCK)).split()[1].rstrip(","))
        os.kill(gater, signal.SIGKILL)
        wait_for(lambda: not locks.runs(folder, "gater"), "the end of the gater")
        assert locks.runs(folder, "drafter")
        provider.release()
        said, _ = both.communicate(timeout=120)
        assert both.returncode == 1
        assert "gater was killed by SIGKILL: the drafter goes on; `roundkit waves gate " in said
        assert "drafter finished" in said
        assert folder.drafted("0002") is not None
        assert len(folder.ledger()) == 1
        run_to_end(leases, "waves", "gate", folder.root)
        assert [row.banked for row in folder.ledger()] == [3, 3]


def test_w10_an_interrupt_stops_both_and_the_same_command_goes_on(open_folder: Path) -> None:
    with wave_provider() as provider:
        provider.hold("f0")
        campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(6)], waves=2, targets=3)
        campaign.ask(provider)
        both = start(open_folder / "leases", *run_words(campaign))
        provider.wait_for_request("f0")
        both.send_signal(signal.SIGINT)
        wait_for(lambda: campaign.folder.at("stop").exists(), "the request to stop")
        provider.release()
        said, _ = both.communicate(timeout=120)
        assert both.returncode == 0, said
        assert campaign.folder.drafted("0001") is not None
        run_to_end(open_folder / "leases", *run_words(campaign))
    assert [row.banked for row in campaign.folder.ledger()] == [3, 3]
    assert_audits(campaign.folder, open_folder)


def test_w03_what_a_killed_drafter_left_is_gated_alone(open_folder: Path) -> None:
    with wave_provider() as provider:
        provider.hold("f4")
        campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(5)])
        campaign.ask(provider)
        campaign.write_plan(workers={"start": 5, "most": 5})
        folder, leases = campaign.folder, open_folder / "leases"
        drafter = start(leases, "waves", "draft", folder.root)
        provider.wait_for_request("f4")
        wait_for(lambda: len(campaign.drafts("0001")) == 4, "four drafts")
        drafter.kill()
        drafter.wait()
        run_to_end(leases, "waves", "gate", folder.root, "--only", "0001")
        assert sorted(files(campaign)) == [f"src/a/f{n}.c" for n in range(4)]
        assert [(row.mode, row.banked) for row in folder.ledger()] == [("gate-only", 4)]
        assert_audits(folder, open_folder / "early")
        # A restarted drafter hands the wave on; nothing is banked twice.
        run_to_end(leases, "waves", "draft", folder.root)
        run_to_end(leases, "waves", "gate", folder.root)
    assert sum(row.banked for row in folder.ledger()) == 4
    assert folder.gated() == {"0001"}
    assert_audits(folder, open_folder / "late")
