"""A folder in which a campaign file is written: the command needs nothing else."""

from __future__ import annotations

import json

from docs.stage import Stage


def editor(stage: Stage) -> None:
    schema = stage.place / "campaign.schema.json"
    stage.on("roundkit schema campaign.yaml", after=lambda _: json.loads(schema.read_text())["properties"])
