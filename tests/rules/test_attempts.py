"""Attempts as pure decisions: capacity, deadline and what an auditor finds wrong in a ledger."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.sample.plan import EPOCH
from support.sample_evidence import sample_round

from roundkit.models.attempts import AttemptPhase, AttemptRecord, Cost
from roundkit.models.round_plan import FrozenLane, LaneBudget
from roundkit.rules.attempts import (
    LaneAccount,
    account,
    capacity_refusal,
    deadline_refusal,
    ledger_problems,
    next_binding,
    remaining_s,
)

DIGEST = "a" * 64
LANE = (
    sample_round()
    .plan.lanes[0]
    .model_copy(
        update={
            "attempts": 3,
            "budget": LaneBudget(tokens=100, micro_usd=None),
            "attempt_worst_case": LaneBudget(tokens=40, wall_s=60),
            "deadline_utc": EPOCH + timedelta(hours=1),
        }
    )
)


def ledger(*phases: AttemptPhase, lane: FrozenLane = LANE, actual: int | None = 0) -> LaneAccount:
    """Return a lane's account after one attempt of each phase."""
    records: list[AttemptRecord] = []
    for phase in phases:
        ran, ended = phase in {"claimed", "settled"}, phase in {"settled", "cancelled"}
        records.append(
            AttemptRecord(
                binding=next_binding(DIGEST, account(lane, records), "run"),
                phase=phase, provenance="scripted",
                reserved_utc=EPOCH, claimed_utc=EPOCH if ran else None, ended_utc=EPOCH if ended else None,
                actual=Cost(tokens=actual, micro_usd=5) if phase == "settled" else None,
            )
        )  # fmt: skip
    return account(lane, records)


@pytest.mark.parametrize("phase", ["reserved", "claimed", "settled", "cancelled"])
def test_r12_every_phase_is_charged_at_its_worst_case(phase: AttemptPhase) -> None:
    book = ledger(phase, phase)
    assert book.charged == Cost(turns=None, tokens=80, micro_usd=None, wall_s=120)
    refusal = capacity_refusal(book)
    assert refusal is not None
    assert refusal.code == "budget-exhausted"
    assert "80 are taken" in refusal.message
    assert list(ledger_problems(DIGEST, book)) == []


@pytest.mark.parametrize(
    ("change", "phases", "actual", "code"),
    [
        ({}, [], 0, None),
        ({}, ["claimed"], 0, None),
        ({}, ["settled"], 60, None),
        ({}, ["settled"], 61, "budget-exhausted"),
        ({}, ["settled"], None, None),
        ({"attempts": 1}, ["cancelled"], 0, "attempts-exhausted"),
        ({"budget": LaneBudget()}, ["claimed", "claimed"], 0, None),
        ({"budget": LaneBudget(tokens=0)}, [], 0, "budget-exhausted"),
        ({"budget": LaneBudget(tokens=120)}, ["claimed", "claimed"], 0, None),
        ({"budget": LaneBudget(turns=9)}, [], 0, "budget-exhausted"),
    ],
    ids=["first", "second", "cost more, fits", "cost more, does not fit", "cost unknown", "number",
         "uncapped", "nothing", "exactly", "no worst case"],
)  # fmt: skip
def test_r11_an_attempt_is_admitted_only_with_capacity(
    change: dict[str, object], phases: list[AttemptPhase], actual: int | None, code: str | None
) -> None:
    refusal = capacity_refusal(ledger(*phases, lane=LANE.model_copy(update=change), actual=actual))
    assert (refusal.code if refusal else None) == code


def test_r13_the_deadline_is_expired_at_its_own_moment_and_bounds_running_work() -> None:
    deadline, instant = LANE.deadline_utc, timedelta(microseconds=1)
    assert deadline_refusal(LANE, deadline - instant) is None
    refusal = deadline_refusal(LANE, deadline)
    assert refusal is not None
    assert (refusal.code, refusal.place) == ("lane-expired", f"round-plan.json: lanes.{LANE.id}.deadline_utc")
    assert remaining_s(LANE, EPOCH) == 60.0
    assert remaining_s(LANE, deadline - timedelta(seconds=9)) == 9.0
    assert remaining_s(LANE, deadline + timedelta(days=1)) == 0.0
    unbounded = LANE.model_copy(update={"attempt_worst_case": LaneBudget()})
    assert remaining_s(unbounded, EPOCH) == 3600.0


def test_what_attempts_cost_is_unknown_while_one_that_ran_is_not_settled() -> None:
    assert ledger().spent == Cost()
    assert ledger("settled", "settled").spent.micro_usd == 10
    assert ledger("settled", "claimed").spent.micro_usd is None
    assert ledger("settled", "cancelled").spent.micro_usd == 5
    assert ledger("cancelled", "reserved").spent.micro_usd == 0


def test_an_auditor_sees_a_ledger_beyond_its_caps() -> None:
    roomy = LANE.model_copy(update={"attempts": 9, "budget": LaneBudget()})
    book = ledger("claimed", "claimed", "claimed", "claimed", lane=roomy)
    found = list(ledger_problems(DIGEST, LaneAccount(LANE, book.records)))
    assert found == ["4 attempts, 3 are allowed", "160 of tokens charged, the cap is 100"]


def test_an_auditor_sees_a_gap_in_the_ordinals() -> None:
    book = ledger("claimed", "claimed")
    found = list(ledger_problems(DIGEST, LaneAccount(LANE, book.records[1:])))
    assert [line.partition(":")[0] for line in found] == ["attempt 2"]
    assert found[0].startswith("attempt 2: ordinal of the attempt is 2, and 1 follows")


@pytest.mark.parametrize("name", ["turns", "tokens", "micro_usd", "wall_s"])
def test_d05_tries_that_no_record_holds_are_refused_and_one_try_is_not(name: str) -> None:
    caps = LaneBudget(**{name: 2**53 - 1})
    lane = LANE.model_copy(update={"budget": LaneBudget(), "attempt_worst_case": caps})
    refusal = capacity_refusal(account(lane, []), tries=3)
    assert refusal is not None
    assert (refusal.code, name in refusal.place) == ("worst-case-too-large", True)
    assert capacity_refusal(account(lane, []), tries=1) is None
    once = ledger("claimed", lane=lane)
    refusal = capacity_refusal(once)
    assert refusal is not None
    assert refusal.code == "worst-case-too-large"
    assert getattr(ledger("claimed", "claimed", lane=lane).charged, name) is None
