"""The evidence in the repository agrees with the code of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from roundkit.audit import audit_pilot, audit_round
from roundkit.evidence import find_evidence

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = find_evidence(ROOT / "evidence")


def test_there_is_evidence_of_a_demo_round() -> None:
    assert [folder.relative_to(ROOT).as_posix() for folder in FOLDERS] == ["evidence/code-search/rounds/r01"]


def test_p10_the_committed_pilots_audit() -> None:
    folders = sorted(path.parent for path in (ROOT / "evidence").glob("*/pilots/*/published.json"))
    assert [folder.name for folder in folders] == ["published-2026-09-13"]
    assert [check for folder in folders for check in audit_pilot(folder).failures] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_n09_committed_evidence_audits(folder: Path) -> None:
    assert [check for check in audit_round(folder).checks if not check.passed] == []
