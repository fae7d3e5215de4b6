"""CONTRIBUTING: commands of the repository itself."""

from __future__ import annotations

from docs.reading import ROOT
from docs.stage import Stage


def contributing(stage: Stage) -> None:
    stage.names["REPOSITORY"] = str(ROOT)
