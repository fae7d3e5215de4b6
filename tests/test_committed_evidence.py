"""The evidence in the repository agrees with the code of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from roundkit.audit import audit_round
from roundkit.audit.policy import audit_policy
from roundkit.evidence import find_evidence

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = [folder for folder in find_evidence(ROOT / "evidence") if "pilots" not in folder.parts]
PILOTS = sorted((ROOT / "evidence").glob("*/pilots/*/plan.json"))


def test_there_is_evidence_of_a_demo_round() -> None:
    assert [folder.relative_to(ROOT).as_posix() for folder in FOLDERS] == ["evidence/code-search/rounds/r01"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_n09_committed_evidence_audits(folder: Path) -> None:
    assert [check for check in audit_round(folder).checks if not check.passed] == []


def test_p11_there_is_evidence_of_a_policy_pilot_and_it_audits() -> None:
    assert [plan.parent.relative_to(ROOT).as_posix() for plan in PILOTS] == [
        "evidence/knobs/pilots/p-versus-s"
    ]
    for plan in PILOTS:
        assert audit_policy(plan.parent).failures == ()
