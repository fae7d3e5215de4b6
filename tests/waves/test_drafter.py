"""The drafter, end to end: real processes behind the real boundary, agents that are scripted."""

from __future__ import annotations

import json
from pathlib import Path

from support.wave_campaigns import WaveCampaign, target, wave_campaign

from roundkit.core.progress import PlainProgress
from roundkit.waves.drafting import run_drafter
from roundkit.waves.status import read_status


def draft(campaign: WaveCampaign, *, expect: int = 0) -> list[str]:
    """Run the drafter to its end and return what it said."""
    lines: list[str] = []
    progress = PlainProgress(lines.append)
    assert run_drafter(campaign.folder.root, banked=lambda _: frozenset(), progress=progress) == expect, lines
    return lines


def test_w01_a_wave_is_drawn_shared_out_drafted_and_handed_on(open_folder: Path) -> None:
    parts = ["right", "wrong-symbol", "wrong-body", "truncated", "right"]
    campaign = wave_campaign(open_folder, [target(f"f{n}", plays=part) for n, part in enumerate(parts)])
    lines = draft(campaign)
    folder = campaign.folder
    drafts = campaign.drafts("0001")
    assert drafts["f0"] == campaign.targets[0]["data"]["source"]
    assert "helped(x)" in drafts["f1"]
    assert "- 2" in drafts["f2"]
    assert campaign.targets[3]["data"]["source"].startswith(drafts["f3"])
    assert drafts["f3"] != campaign.targets[3]["data"]["source"]
    drafted = folder.drafted("0001")
    assert drafted is not None
    assert (drafted.shards, drafted.running, drafted.workers) == (3, 0, 3)
    ends = [end for _, end in folder.shards("0001")]
    assert [end and (end.end_reason, end.exit_code) for end in ends] == [("exited", 0)] * 3
    status = read_status(folder)
    assert [wave.state for wave in status.waves] == ["waiting"]
    traffic = status.waves[0].traffic
    assert traffic is not None
    assert (traffic.requests, traffic.truncated, traffic.bad_lines) == (5, 1, 0)
    assert status.drafter is not None
    assert (status.drafter.state, status.drafter.reason) == ("ended", "waves")
    assert not [line for line in lines if "ended:" in line and "drafter" not in line], lines
    rows = [json.loads(line) for line in (folder.root / "events.jsonl").read_text().splitlines()]
    assert sum(row["truncated"] for row in rows) == 1
