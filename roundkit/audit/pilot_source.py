"""A pilot opened for whoever shows it: its cohort and its findings, wherever it was run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roundkit.audit.pilot_material import findings_of, read_pilot
from roundkit.audit.published_material import read_published
from roundkit.evidence.pilot_reader import PilotReader
from roundkit.models.pilot_cohort import Cohort
from roundkit.models.pilot_findings import Finding
from roundkit.rules.pilot_taxonomy import findings


@dataclass(frozen=True)
class PilotSource:
    """A pilot.

    Attributes:
        path: Its folder.
        cohort: Every expected tuple, with what came of it.
        findings: What went wrong, ranked.
    """

    path: Path
    cohort: Cohort
    findings: tuple[Finding, ...]


def open_pilot(path: Path) -> PilotSource:
    """Open a pilot's folder, of one that is not finished too.

    Raises:
        EvidenceProblem: there is no plan, and no published cohort, that can be read; ``plan-changed``.
    """
    reader = PilotReader(path)
    if reader.is_published:
        cohort = read_published(path)
        return PilotSource(path, cohort, findings(cohort))
    reader.plan()
    material = read_pilot(path)
    return PilotSource(path, material.cohort, findings_of(material))
