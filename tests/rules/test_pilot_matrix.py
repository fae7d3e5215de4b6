"""P02: what is missing, there twice, not expected or renamed is named."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.pilots import example

from roundkit.models.pilot_plan import PairedPlan, Slot
from roundkit.models.pilot_trial import TrialRecord, TrialStart
from roundkit.rules.pilot_matrix import Attempt, attempt_name, matrix_findings, open_slots, order_notes

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> PairedPlan:
    return example(tmp_path_factory.mktemp("pilot")).freeze()[1]


def attempt(plan: PairedPlan, slot: Slot) -> Attempt:
    name, digest = attempt_name(slot), plan.digest()
    moment = NOW + timedelta(minutes=slot.order)
    start = TrialStart(
        format="roundkit-pilot-start/1", plan_sha256=digest, tuple_id=slot.tuple_id, order=slot.order,
        attempt=name, started_utc=moment, previous_sha256=None,
    )  # fmt: skip
    record = TrialRecord(
        format="roundkit-pilot-trial/1", plan_sha256=digest, tuple_id=slot.tuple_id, order=slot.order,
        attempt=name, provenance="scripted", started_utc=moment, ended_utc=None, process="aborted", detail="",
        agent=None, calls=0, failed_calls=0, wall_ms=None, validation_ms=None, acceptance=None, truncated=(),
        files=(),
    )  # fmt: skip
    return Attempt(name, start, record)


def found(plan: PairedPlan, attempts: list[Attempt]) -> list[tuple[str, str]]:
    rows = matrix_findings(plan, attempts, plan_sha256=plan.digest())
    return [(row.code, row.tuple_id) for row in rows]


def test_p02_a_whole_matrix_has_no_findings(plan: PairedPlan) -> None:
    whole = [attempt(plan, slot) for slot in plan.schedule]
    assert found(plan, whole) == []
    assert open_slots(plan, whole) == []


def test_p02_a_missing_tuple_is_named(plan: PairedPlan) -> None:
    slot = plan.schedule[6]
    rest = [attempt(plan, other) for other in plan.schedule if other != slot]
    assert found(plan, rest) == [("missing", slot.tuple_id)]
    assert open_slots(plan, rest) == [slot]


def test_p02_a_tuple_that_is_there_twice_is_named_with_both_folders(plan: PairedPlan) -> None:
    whole = [attempt(plan, slot) for slot in plan.schedule]
    twice = replace(whole[3], name="099-" + plan.schedule[3].tuple_id)
    rows = matrix_findings(plan, [*whole, twice], plan_sha256=plan.digest())
    assert {(row.code, row.tuple_id) for row in rows} == {
        ("duplicate", plan.schedule[3].tuple_id), ("renamed", plan.schedule[3].tuple_id),
    }  # fmt: skip
    duplicate = next(row for row in rows if row.code == "duplicate")
    assert duplicate.attempts == (whole[3].name, twice.name)


def test_p02_an_extra_tuple_is_named(plan: PairedPlan) -> None:
    whole = [attempt(plan, slot) for slot in plan.schedule]
    extra = attempt(plan, Slot(order=19, task="rename", variant="plain", repetition=4))
    assert found(plan, [*whole, extra]) == [("extra", "rename.plain.4")]
    assert found(plan, [*whole, Attempt("020-rename.new.1", None, None)]) == [("extra", "rename.new.1")]


@pytest.mark.parametrize("part", ["name", "start", "record", "plan"])
def test_p02_a_renamed_tuple_is_named_whichever_of_its_names_is_wrong(plan: PairedPlan, part: str) -> None:
    whole = [attempt(plan, slot) for slot in plan.schedule]
    one = whole[4]
    assert one.start is not None
    assert one.record is not None
    other = plan.schedule[5]
    whole[4] = {
        "name": replace(one, name=f"004-{other.tuple_id}"),
        "start": replace(one, start=one.start.model_copy(update={"order": 9})),
        "record": replace(one, record=one.record.model_copy(update={"tuple_id": other.tuple_id})),
        "plan": replace(one, record=one.record.model_copy(update={"plan_sha256": "0" * 64})),
    }[part]
    assert found(plan, whole) == [("renamed", plan.schedule[4].tuple_id)]


def test_p02_an_attempt_without_a_record_is_unfinished_and_its_slot_is_used(plan: PairedPlan) -> None:
    whole = [attempt(plan, slot) for slot in plan.schedule]
    for unreadable in (replace(whole[2], record=None), replace(whole[2], record=None, start=None)):
        whole[2] = unreadable
        assert found(plan, whole) == [("unfinished", plan.schedule[2].tuple_id)]
        assert open_slots(plan, whole) == []


def test_a_tuple_that_ran_after_its_turn_is_noted(plan: PairedPlan) -> None:
    whole = [attempt(plan, slot) for slot in plan.schedule]
    names = [each.name for each in whole]
    assert order_notes(whole, names) == []
    assert order_notes(whole, ["rename.plain-1", *names[3:]]) == []
    assert order_notes(whole, [*names[1:], names[0]]) == [plan.schedule[0].tuple_id]


def test_the_matrix_is_the_frozen_one(plan: PairedPlan, tmp_path: Path) -> None:
    assert len(plan.schedule) == 18
    assert example(tmp_path).freeze()[1].schedule_sha256 == plan.schedule_sha256
