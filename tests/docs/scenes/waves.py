"""A campaign of small targets whose draft agents are scripts."""

from __future__ import annotations

from docs.stage import Stage
from support.wave_campaigns import target, wave_campaign


def waves(stage: Stage) -> None:
    targets = [target(f"f{number}") for number in range(4)]
    campaign = wave_campaign(stage.root / "mine", targets, targets=2, waves=2)
    stage.place = campaign.root
    stage.names["WAVE_DIR"] = "../campaign"
