"""W02: a gater killed by SIGKILL anywhere loses no bank, counts none twice and stages nothing stale."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.wave_builder import WaveCampaign, killed_gater, wave_campaign
from support.wave_campaigns import target as drafted_target
from support.wave_campaigns import wave_campaign as drafted_campaign

from roundkit.models.wave_records import LedgerRow
from roundkit.rules.wave_steps import STEPS
from roundkit.waves.banked import bank_commits

STATES = (
    *(state for step in STEPS[:3] for state in (step, f"{step} recorded")),
    "gate", "tree as found is committed", "group recorded", "gate recorded",
    "commit", "tree written", "committed", "commit recorded",
    "harvest", "harvest recorded", "row", "row recorded",
    "rejects written", "ledger written", "finished",
)  # fmt: skip
"""What a run comes to, in order; at ``tree written`` its files are in the tree and in no commit."""

CRITICAL = ("prefilter", "pick", "group recorded", "tree written", "committed", "harvest", "ledger written")
"""One in each step, and where most can go wrong."""

EXPECTED = [("g", "a"), ("g", "b"), ("h", "c"), ("h", "d")]


def a_campaign(folder: Path) -> WaveCampaign:
    """Two waves, with something of everything: two groups, a reject, a homonym, an attempt too many."""
    campaign = wave_campaign(folder)
    tag = campaign.wave(("g", "a"), ("g", "b"), ("h", "c"), ("h", "b"))
    drafts = {
        "a.txt": "right g a\n", "g/b.txt": "right g b\n", "c.txt": "right h c\n", "h/b.txt": "wrong\n",
        "b.txt": "whose?\n",
    }  # fmt: skip
    campaign.shard(tag, 0, drafts)
    campaign.shard(tag, 1, {"a.txt": "right g a score=5\n"}, attempt=2)
    campaign.hand_on(tag)
    campaign.drafted({"d.txt": "right h d\n", "a.txt": "stale g a\n"}, ("h", "d"), ("g", "a"))
    return campaign


def assert_whole(campaign: WaveCampaign, *, logged: bool = True) -> None:
    """Check what must hold once every wave has its row, whatever became of the gaters before.

    Args:
        campaign: The campaign.
        logged: Whether every gate could say what it was given; a full disk holds no gate up.
    """
    assert campaign.banked() == EXPECTED
    rows = campaign.rows()
    assert [(row.tag, row.mode, row.banked) for row in rows] == [("0001", "wave", 3), ("0002", "wave", 1)]
    assert [_counts(row) for row in rows] == [(4, 6, 1, 4), (2, 2, 0, 1)]
    held = {row.tag: row.commit for row in rows}
    assert campaign.git.resolve("HEAD") == held["0002"]
    assert campaign.git.resolve("HEAD~1") == held["0001"]
    assert sorted((row.tag, row.stage) for row in campaign.rejects()) == [
        ("0001", "gate"), ("0001", "owner"), ("0001", "score"), ("0002", "owner"),
    ]  # fmt: skip
    for group, name in EXPECTED:
        assert (campaign.tree / f"src/{group}/{name}.txt").read_text().startswith(f"right {group} {name}")
    assert campaign.git.dirty_paths() == []
    assert campaign.git.git("diff", "--cached", "--quiet", check=False).exit_code == 0
    assert "stale" not in campaign.logs()
    staged = {
        "staged src/g/a.txt right g a score=5", "staged src/g/b.txt right g b",
        "staged src/h/c.txt right h c", "staged src/h/b.txt wrong", "staged src/h/d.txt right h d",
    }  # fmt: skip
    told = {line for line in campaign.logs().splitlines() if line.startswith("staged")}
    assert told == staged if logged else told <= staged
    assert not list(campaign.tree.rglob("*.tmp"))


def _counts(row: LedgerRow) -> tuple[int, int, int, int]:
    return (row.targets, row.drafts, row.unresolved, row.gated)


def assert_survives(campaign: WaveCampaign, states: Sequence[str]) -> None:
    for state in states:
        assert campaign.gate_until_killed(state) == -9, state
        assert len(campaign.banked()) == len(set(campaign.banked()))
    assert campaign.gate() == 0
    assert_whole(campaign)
    assert [run.number for tag in ("0001", "0002") for run in campaign.runs(tag)] == [1, 1]


def test_w02_a_gater_killed_in_each_step_loses_no_bank_and_counts_none_twice(open_folder: Path) -> None:
    assert_survives(a_campaign(open_folder), CRITICAL)


@pytest.mark.slow
def test_w02_a_gater_killed_in_every_state_loses_no_bank_and_counts_none_twice(open_folder: Path) -> None:
    assert_survives(a_campaign(open_folder), STATES)


def test_w02_a_run_comes_to_every_state_in_this_order(open_folder: Path) -> None:
    campaign, reached = a_campaign(open_folder), []
    assert campaign.gate(mark=reached.append) == 0
    assert_whole(campaign)
    assert list(dict.fromkeys(reached)) == list(STATES)


@pytest.mark.slow
@pytest.mark.parametrize("event", ["rename", "start"])
def test_w02_a_gater_killed_before_any_rename_or_process_loses_nothing(open_folder: Path, event: str) -> None:
    campaign, number = a_campaign(open_folder), 1
    # Each start gets a little further than the one before it, since what is recorded is not done again.
    while campaign.gate_until_killed(f"{event} {number}"):
        number += 1
    assert number > len(STEPS)
    assert_whole(campaign)


def test_w02_the_drafter_never_pauses_while_its_gater_is_killed_again_and_again(open_folder: Path) -> None:
    waves, per_wave = 3, 4
    targets = [
        drafted_target(f"f{number}", plays="wrong-body" if number % per_wave == 1 else "right")
        for number in range(waves * per_wave)
    ]
    campaign = drafted_campaign(open_folder, targets, waves=waves, targets=per_wave, queue_depth=waves)
    with campaign.drafting() as drafting:
        for state in ("prefilter", "group recorded", "tree written", "ledger written"):
            # Whether there is a wave yet or not: the gater waits for one.
            assert killed_gater(state, campaign.folder.root) == -9
            assert not drafting.said("drafter waiting: queue")
        drafting.join()
        assert drafting.code == 0
    assert killed_gater("none of them", campaign.folder.root) == 0
    banked = [key for commit in bank_commits(campaign.tree, "test") for key in commit.banked]
    right = sorted(one["name"] for one in targets if one["data"]["plays"] == "right")
    assert sorted(name for _, name, _ in banked) == right
    assert [(row.tag, row.mode) for row in campaign.folder.ledger()] == [
        (f"{number:04d}", "wave") for number in range(1, waves + 1)
    ]
