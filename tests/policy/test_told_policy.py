"""P11: of a policy pilot's second clock nothing can be said that no host's clock can have told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.policy_forging import derive_again, forge

from roundkit.audit.policy import audit_policy

PILOT = Path(__file__).resolve().parents[2] / "evidence/knobs/pilots/p-versus-s"
RUN = "runs/06-P.3"
RERUN = f"{RUN}/rounds/P3-r01/experiments/rerun.1.json"
LATER_US = 3_600_000_000
BEFORE = "us before what came before"


@pytest.fixture
def pilot(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PILOT, tmp_path / "p-versus-s"))


def later(clock: Any, by_us: int = LATER_US) -> None:
    clock.update(from_us=clock["from_us"] + by_us, to_us=clock["to_us"] + by_us)


LIES: dict[str, tuple[str, Callable[[Any], object], str]] = {
    "an experiment of another start of the host": (
        RERUN, lambda record: record["ended_clock"].update(boot_id="another"), "is of another start"),
    "an end of another start of the host": (
        f"{RUN}/end.json", lambda record: record["clock"].update(boot_id="another"), "is of another start"),
    "an experiment after the end of its run": (
        RERUN, lambda record: later(record["ended_clock"]), BEFORE),
    "an experiment before its launch": (
        RERUN, lambda record: later(record["ended_clock"], -LATER_US // 2), BEFORE),
    "a launch after its experiments": (
        f"{RUN}/launch.json", lambda record: later(record["clock"]), BEFORE),
    "a launch before the end of the run before it": (
        f"{RUN}/launch.json", lambda record: later(record["clock"], -LATER_US // 2), BEFORE),
    "a reading without an end": (
        f"{RUN}/end.json", lambda record: record["clock"].update(to_us=2**50), "was read from"),
    "a reading that ended before it began": (
        f"{RUN}/end.json", lambda record: record["clock"].update(from_us=2**50), "was read from"),
}  # fmt: skip


def test_p11_what_is_derived_anew_from_the_same_rounds_is_the_same(pilot: Path) -> None:
    before = {path: path.read_bytes() for path in pilot.rglob("*.json")}
    derive_again(pilot)
    assert {path: path.read_bytes() for path in pilot.rglob("*.json")} == before


@pytest.mark.parametrize("lie", LIES)
def test_p11_a_reading_that_no_clock_can_have_given_is_named(pilot: Path, lie: str) -> None:
    name, change, words = LIES[lie]
    forge(pilot, name, change)
    found = audit_policy(pilot).failures
    assert {check.name for check in found} == {"runs"}, found
    assert any(words in check.detail for check in found), found


@pytest.mark.parametrize("name", ["launch.json", "end.json"])
def test_p11_a_host_whose_experiments_have_two_clocks_has_two(pilot: Path, name: str) -> None:
    forge(pilot, f"{RUN}/{name}", lambda record: record.pop("clock"))
    [found] = audit_policy(pilot).failures
    assert (found.where, found.detail) == (f"{RUN}/{name}", "has one clock, and its experiments have two")
