"""N09: of a real round that paused, resumed and repeated, no event can be left out, made up or changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.forging import forge_log, forge_record
from support.killing import plain_repo
from support.synthetic import knob, reachable_folder, scripted_lane

from roundkit.audit import audit_round
from roundkit.core.clock import format_utc
from roundkit.host.devices.fixture import FIXTURE_VARIABLE
from roundkit.host.lease import LEASE_ROOT_VARIABLE
from roundkit.rounds.close import close
from roundkit.rounds.control import resume
from roundkit.rounds.serve import serve

from .conftest import force_entry

Row = dict[str, Any]
COOL = {"readings": {"temperature_c": 40.0}}
LIMITS = {"max_temperature_c": 60}


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def evidence() -> Iterator[Path]:
    """The evidence of a round whose device was hot for one experiment, and whose L3 handed over rubbish."""
    with reachable_folder() as root, pytest.MonkeyPatch.context() as patch:
        device = root / "devices" / "a.json"
        device.parent.mkdir()
        device.write_text(json.dumps(COOL))
        patch.setenv(LEASE_ROOT_VARIABLE, str(root / "leases"))
        patch.setenv(FIXTURE_VARIABLE, str(device.parent))
        sets = [{"id": "set-a", "platform": "fixture", "devices": ["a"], "limits": LIMITS}]
        repo = plain_repo(root / "s", ["L1", "L2", "L3"], device_sets=sets)
        folder, _ = repo.launched(root / "s/round")
        scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.3)})
        force_entry(folder, "L3", [], raw=b"rubbish")
        serve(folder, until="idle", report=lambda _line: None)
        device.write_text(json.dumps({**COOL, "problem_after": "it is hot"}))
        scripted_lane(folder.clone("L2"), {"knobs/L2.json": knob(0.3)})
        assert serve(folder, until="idle", report=lambda _line: None).paused is not None
        device.write_text(json.dumps(COOL))
        resume(folder)
        serve(folder, until="idle", report=lambda _line: None)
        yield close(folder, report=lambda _line: None).evidence


def failures(folder: Path) -> set[str]:
    return {check.name for check in audit_round(folder).failures}


def test_n09_the_round_as_it_was_agrees(evidence: Path) -> None:
    rows = [json.loads(line) for line in (evidence / "events.jsonl").read_bytes().splitlines()]
    assert {"submission-rejected", "requeued", "paused", "resumed"} <= {row["kind"] for row in rows}
    assert failures(evidence) == set()


def without(rows: list[Row], found: Row) -> list[Row]:
    return [row for row in rows if row is not found]


def twice(rows: list[Row], found: Row) -> list[Row]:
    return [*rows[: rows.index(found)], found, *rows[rows.index(found) :]]


def changed(field: str) -> Callable[[list[Row], Row], list[Row]]:
    def change(rows: list[Row], found: Row) -> list[Row]:
        found["fields"][field] = "another"
        return rows

    return change


@pytest.mark.parametrize("when", ["devices_before", "devices_after"])
def test_n09_a_device_beyond_the_plans_limits_did_not_qualify(
    evidence: Path, tmp_path: Path, when: str
) -> None:
    def change(record: Any) -> None:
        record[when][0]["readings"]["temperature_c"] = 90

    forged = forge_record(evidence, tmp_path / "r01", "experiments/aa-1.1.json", change)
    assert failures(forged) == {"devices"}


def test_n09_a_verdict_and_its_event_have_one_time(evidence: Path, tmp_path: Path) -> None:
    def forged(rows: list[Row]) -> list[Row]:
        row = next(row for row in rows if row["kind"] == "verdict")
        row["time"] = format_utc(datetime.fromisoformat(row["time"]) + timedelta(minutes=11))
        return rows

    assert failures(forge_log(evidence, tmp_path / "r01", forged)) == {"log"}


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("submission-rejected", without),
        ("submission-rejected", twice),
        ("submission-rejected", changed("cause")),
        ("submission-rejected", changed("lane")),
        ("requeued", without),
        ("requeued", twice),
        ("requeued", changed("reason")),
        ("paused", without),
        ("paused", changed("experiment")),
        ("resumed", without),
        ("resumed", changed("experiment")),
    ],
)
def test_n09_an_event_that_follows_from_records_is_missed(
    evidence: Path, tmp_path: Path, kind: str, change: Callable[[list[Row], Row], list[Row]]
) -> None:
    def forged(rows: list[Row]) -> list[Row]:
        return change(rows, next(row for row in rows if row["kind"] == kind))

    assert failures(forge_log(evidence, tmp_path / "r01", forged)) == {"events"}
