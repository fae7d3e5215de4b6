"""A campaign that was drafted and not gated, one group of it put aside."""

from __future__ import annotations

from docs.stage import Stage
from support.wave_campaigns import target, wave_campaign


def waves_gate(stage: Stage) -> None:
    targets = [target("f0", "a"), target("f1", "a"), target("f2", "b")]
    campaign = wave_campaign(stage.root / "mine", targets)
    campaign.write_plan(gate={"parked_groups": ["b"]})
    stage.names.update(WAVE_DIR=str(campaign.directory), DIR="../export")
    stage.names.update({"0007": "0001", "40": "8"})
    campaign.draft()
