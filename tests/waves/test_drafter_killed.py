"""The drafter as a process of its own: killed, refused, short of room, and beside a slow gate."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.killing import run_to_end, start, wait_for
from support.small_disk import fill, mounted_disk
from support.wave_audits import assert_audits
from support.wave_campaigns import WaveCampaign, target, wave_campaign
from support.wave_provider import wave_provider

from roundkit.core.errors import Refused
from roundkit.evidence import wave_layout as names
from roundkit.waves.freeze import freeze
from roundkit.waves.shard_run import LOST
from roundkit.waves.status import read_status


def agents(campaign: WaveCampaign) -> list[str]:
    """Return the processes that have a shard's drafts mounted."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                mounts = (entry / "mountinfo").read_text()
            except OSError:
                continue
            if f"{campaign.directory.name}/waves" in mounts and " /wave/drafts " in mounts:
                found.append(entry.name)
    return found


def test_w03_a_killed_drafter_leaves_its_drafts_and_no_agent(open_folder: Path) -> None:
    with wave_provider() as provider:
        provider.hold("f4")
        campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(5)])
        campaign.ask(provider)
        campaign.write_plan(workers={"start": 5, "most": 5})
        folder = campaign.folder
        drafter = start(open_folder / "leases", "waves", "draft", folder.root)
        provider.wait_for_request("f4")
        wait_for(lambda: sum(end is not None for _, end in folder.shards("0001")) == 4, "the tail")
        assert agents(campaign)
        drafter.send_signal(signal.SIGKILL)
        drafter.wait()
        wait_for(lambda: not agents(campaign), "the end of the straggler")
        assert folder.drafted("0001") is None
        assert sorted(campaign.drafts("0001")) == ["f0", "f1", "f2", "f3"]
        events = folder.at(names.EVENTS).read_bytes()
        said = run_to_end(open_folder / "leases", "waves", "draft", folder.root)
    assert "0001: taken up again, 0 shards to start" in said
    drafted = folder.drafted("0001")
    assert drafted is not None
    assert (drafted.shards, drafted.running) == (5, 0)
    ends = [end.end_reason for _, end in folder.shards("0001") if end is not None]
    assert ends == ["exited"] * 4 + [LOST]
    # Everything that had been collected is there once.
    assert folder.at(names.EVENTS).read_bytes().startswith(events)
    rows = [json.loads(line) for line in folder.at(names.EVENTS).read_bytes().splitlines()]
    assert sum(row["event"] == "post" for row in rows) == 5


def test_w03_a_straggler_of_a_wave_that_was_handed_on_is_written_off_by_the_next_drafter(
    open_folder: Path,
) -> None:
    with wave_provider() as provider:
        provider.hold("f4")
        campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(5)])
        campaign.ask(provider)
        campaign.write_plan(draft={"grace_s": 0}, workers={"start": 5, "most": 5})
        folder = campaign.folder
        drafter = start(open_folder / "leases", "waves", "draft", folder.root)
        drafted = wait_for(lambda: folder.drafted("0001"), "the hand-over")
        assert drafted.running == 1
        drafter.send_signal(signal.SIGKILL)
        drafter.wait()
        campaign.draft()
    assert folder.drafted("0001") == drafted
    ends = [end.end_reason for _, end in folder.shards("0001") if end is not None]
    assert ends == ["exited"] * 4 + [LOST]
    assert_audits(folder, open_folder)


def test_a_wave_that_was_cut_off_in_its_ramp_is_started_where_it_was(open_folder: Path) -> None:
    with wave_provider() as provider:
        provider.hold("f0")
        campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(4)])
        campaign.ask(provider)
        campaign.write_plan(draft={"ramp_s": 4000, "most_ramp_s": 1000}, workers={"start": 4, "most": 4})
        folder = campaign.folder
        drafter = start(open_folder / "leases", "waves", "draft", folder.root)
        provider.wait_for_request("f0")
        drafter.send_signal(signal.SIGKILL)
        drafter.wait()
        assert [shard.index for shard, _ in folder.shards("0001")] == [0]
        # What was begun of a shard before its record was written is made anew.
        (folder.shard("0001", 1) / names.DRAFTS).mkdir(parents=True)
        provider.release()
        with campaign.drafting() as drafting:
            wait_for(lambda: "f1" in campaign.drafts("0001"), "the next shard")
            assert drafting.said("taken up again, 3 shards to start")
    assert [shard.index for shard, _ in folder.shards("0001")] == [0, 1]


def test_w11_a_second_campaign_in_the_folder_is_refused(open_folder: Path) -> None:
    with wave_provider() as provider:
        provider.hold("f0")
        campaign = wave_campaign(open_folder, [target("f0")])
        campaign.ask(provider)
        drafter = start(open_folder / "leases", "waves", "draft", campaign.folder.root)
        provider.wait_for_request("f0")
        again = ("waves", "run", campaign.plan_file, "--dir", campaign.directory)
        said = run_to_end(open_folder / "leases", *again, expect=3)
        assert "[drafter-running]" in said
        assert f"pid {drafter.pid}" in said
        with pytest.raises(Refused, match="drafter-running"), campaign.drafting() as second:
            second.join()
        campaign.write_plan(campaign_id="other")
        with pytest.raises(Refused, match="plan-changed"):
            freeze(campaign.plan_file, campaign.directory)
        provider.release()
        said, _ = drafter.communicate(timeout=60)
        assert drafter.returncode == 0, said


def test_w09_a_slow_gate_leaves_the_fleet_busy(open_folder: Path) -> None:
    """The gate takes longer than a wave takes to draft; the run-ahead is what the plan allows."""
    waves, per_wave = 5, 4
    targets = [
        target(f"f{n}", plays="slow", seconds=0.6 + 0.4 * (n % per_wave)) for n in range(waves * per_wave)
    ]
    campaign = wave_campaign(open_folder, targets)
    campaign.write_plan(
        waves=waves, targets=per_wave, queue_depth=3, draft={"tail": 0.5}, workers={"start": 4, "most": 4},
    )  # fmt: skip
    folder, over = campaign.folder, threading.Event()
    gated: list[str] = []

    def gate() -> None:
        while not over.is_set() and len(gated) < waves:
            ready = [tag for tag in folder.tags() if folder.drafted(tag) is not None and tag not in gated]
            if not ready:
                over.wait(0.05)
                continue
            over.wait(3.0)
            campaign.gated(ready[0])
            gated.append(ready[0])

    gater = threading.Thread(target=gate)
    gater.start()
    try:
        campaign.draft()
    finally:
        over.set()
        gater.join()
    status = read_status(folder)
    assert len(status.waves) == waves
    # The gate was behind all the time.
    assert len(status.queue) >= 2
    use = read_status(folder).fleet
    assert use.idle_share is not None
    assert use.idle_share < 0.05, use


@pytest.fixture
def small_disk(open_folder: Path) -> Iterator[Path]:
    """A file system of 8 MiB of its own."""
    with mounted_disk(open_folder, 8) as disk:
        yield disk


def test_w10_a_full_disk_holds_the_drafter_up_and_loses_nothing(open_folder: Path, small_disk: Path) -> None:
    with wave_provider() as provider:
        provider.hold("f0")
        campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(6)])
        campaign.ask(provider)
        campaign.write_plan(waves=2, targets=3)
        campaign.directory = small_disk / "campaign"
        folder = campaign.folder
        with campaign.drafting() as drafting:
            provider.wait_for_request("f0")
            wait_for(lambda: folder.tags() == ["0001", "0002"], "the second draw")
            filler = fill(small_disk)
            provider.release()
            wait_for(lambda: drafting.said("disk-full"), "the words about the disk")
            assert folder.drafted("0001") is None
            assert drafting.is_alive()
            filler.unlink()
            drafting.join()
        assert drafting.code == 0, drafting.lines
    assert [folder.drafted(tag) is not None for tag in folder.tags()] == [True, True]
    assert sorted(campaign.drafts("0002")) == ["f3", "f4", "f5"]
    assert sum("disk-full" in line for line in drafting.lines) == 1
