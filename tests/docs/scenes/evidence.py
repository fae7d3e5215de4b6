"""A closed round, and the folder that it left."""

from __future__ import annotations

import re

from docs.stage import Stage
from support.killing import scene


def evidence(stage: Stage) -> None:
    made = scene(stage.root / "closed", {"L1": 0.5})
    stage.run(f"roundkit serve {made.folder.root} --until-idle")
    said = stage.run(f"roundkit close {made.folder.root}")
    told = dict(re.findall(r"^(evidence|index) (\S+)$", said, re.MULTILINE))
    stage.names.update(EVIDENCE_DIR=told["evidence"], DIGEST=told["index"], PROGRAM=str(made.repo.root))
