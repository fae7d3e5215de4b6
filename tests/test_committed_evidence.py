"""The evidence in the repository agrees with the code of the repository."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from roundkit.cli.app import app
from roundkit.evidence import find_evidence
from roundkit.evidence.kinds import evidence_kind

ROOT = Path(__file__).resolve().parent.parent
EVERY_KIND = {
    "evidence/agent-task-comparison/pilots/published-2026-09-13": "paired",
    "evidence/c-functions": "waves",
    "evidence/code-search/rounds/r01": "round",
    "evidence/knobs/pilots/p-versus-s": "policy",
}


def test_n09_there_is_evidence_of_every_kind_and_nothing_else() -> None:
    rounds = [folder for folder in find_evidence(ROOT / "evidence") if "pilots" not in folder.parts]
    pilots = [path.parent for path in (ROOT / "evidence").glob("*/pilots/*/p*.json")]
    waves = [path.parent for path in (ROOT / "evidence").glob("*/waves-index.json")]
    found = {folder.relative_to(ROOT).as_posix(): evidence_kind(folder) for folder in rounds + pilots + waves}
    assert dict(sorted(found.items())) == EVERY_KIND


def test_n09_one_command_audits_all_committed_evidence() -> None:
    done = CliRunner().invoke(app, ["audit", *(str(ROOT / path) for path in EVERY_KIND), "--json"])
    reports = json.loads(done.stdout)
    failures = [(report["subject"], check) for report in reports for check in report["checks"]]
    assert [row for row in failures if not row[1]["passed"]] == []
    assert done.exit_code == 0
    assert [report["subject"] for report in reports] == [Path(path).name for path in EVERY_KIND]
