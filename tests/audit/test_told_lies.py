"""N09: lies about a round that the evidence itself contradicts, though every hash over them was mended."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.forging import Rows, forge_log, forge_record
from support.sample_evidence import export_sample, sample_round

from roundkit.audit import audit_round
from roundkit.core.clock import format_utc
from roundkit.models.ledger import RejectCause
from roundkit.rules.verdict import unmeasured

LEDGER = "round-ledger.json"
SPEC = sample_round().run_spec


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("told")
    return export_sample(base / "r01", sample_round(), base / "scratch")


def failures(folder: Path) -> dict[str, str]:
    return {check.name: check.detail for check in audit_round(folder).failures}


def rejected_as(cause: RejectCause) -> Callable[[Any], None]:
    """Turn a ticket that was rejected by its build into one that intake turned away."""

    def change(ledger: Any) -> None:
        ticket = next(row for row in ledger["tickets"] if row["reject_cause"] == "build")
        ticket.update(reject_cause=cause, commands=[])

    return change


@pytest.mark.parametrize(
    ("cause", "why"),
    [
        ("scope", "cause of its rejection is"),
        ("protected-path", "cause of its rejection is"),
        ("late", "before its lane's deadline"),
        ("cap", "rejected as over a cap"),
    ],
)
def test_n09_a_candidate_is_not_turned_away_for_what_its_manifest_plan_and_log_deny(
    pristine: Path, tmp_path: Path, cause: RejectCause, why: str
) -> None:
    assert failures(pristine) == {}
    found = failures(forge_record(pristine, tmp_path / "r01", LEDGER, rejected_as(cause)))
    assert why in found["ticket states"]


def test_n09_what_was_out_of_scope_was_rejected_for_that(pristine: Path, tmp_path: Path) -> None:
    def change(ledger: Any) -> None:
        ticket = next(row for row in ledger["tickets"] if row["reject_cause"] == "build")
        ticket["manifest"]["entries"][0]["path"] = "nobody's"

    found = failures(forge_record(pristine, tmp_path / "r01", LEDGER, change))
    assert "recomputed scope" in found["ticket states"]


def never_rerun(ledger: Any) -> None:
    """Say that the composed head does not build, and neither does the best lane: the incumbent is kept."""
    first = ledger["composition"][0]
    broken = json.loads(unmeasured("candidate-build", SPEC, verdict_name="fail").to_bytes())
    rerun = {**ledger["rerun"][0], "experiment": None, "verdict": broken}
    best = {"commit": first["candidate"], "tree": first["tree"], "lanes": [first["lane"]]}
    ledger["rerun"] = [rerun, {**rerun, **best, "kind": "fallback"}]


def no_rerun(ledger: Any) -> None:
    ledger["rerun"] = []


def no_second_step(ledger: Any) -> None:
    ledger["composition"][1]["experiment"] = None


@pytest.mark.parametrize(
    ("change", "name"), [(never_rerun, "rerun.1"), (no_rerun, "rerun.1"), (no_second_step, "step-2")]
)
def test_n09_what_was_measured_cannot_be_said_never_to_have_been(
    pristine: Path, tmp_path: Path, change: Callable[[Any], None], name: str
) -> None:
    report = audit_round(forge_record(pristine, tmp_path / "r01", LEDGER, change))
    [found] = [check for check in report.failures if check.name == "roles"]
    assert name in found.where
    assert found.detail == "was measured to its end, and the ledger does not name it"


@pytest.mark.parametrize(
    "kind",
    ["intake", "submission-rejected", "attempt-reserved", "attempt-claimed", "attempt-settled"],
)
def test_n09_an_event_and_its_record_have_one_time(pristine: Path, tmp_path: Path, kind: str) -> None:
    def change(rows: Rows) -> Rows:
        row = next(row for row in rows if row["kind"] == kind)
        row["time"] = later(row["time"])
        return rows

    found = failures(forge_log(pristine, tmp_path / "r01", change))
    assert f"time of {kind}" in found["log"]


def test_n09_a_late_candidate_is_not_dated_back(pristine: Path, tmp_path: Path) -> None:
    def change(ledger: Any) -> None:
        row = ledger["tickets"][0]
        row["intake_utc"] = later(row["intake_utc"])

    assert "time of intake" in failures(forge_record(pristine, tmp_path / "r01", LEDGER, change))["log"]


def later(time: str) -> str:
    return format_utc(datetime.fromisoformat(time) + timedelta(minutes=11))
