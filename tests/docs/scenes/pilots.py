"""The example of a paired pilot, as it ships, with scripted agents."""

from __future__ import annotations

import shutil

from docs.reading import ROOT
from docs.stage import Stage


def pilots(stage: Stage) -> None:
    shutil.copytree(ROOT / "templates/pilot-paired", stage.place / "templates/pilot-paired")
    pilot = str(stage.root / "pilot")
    stage.names.update({"/tmp/pilot": pilot, "PILOT_DIR": pilot, "TUPLE": "rename.guided.2"})
    stage.on("roundkit pilot prepare", takes={"DIGEST": r"digest ([0-9a-f]{64})"})
    stage.on("roundkit pilot run /tmp/pilot --only", takes={"HEAD": r"head ([0-9a-f]{64})"})
    stage.on("roundkit pilot review packet PILOT_DIR --all", takes={"packet-5f0c91d2": r"(packet-[0-9a-f]+)"})
