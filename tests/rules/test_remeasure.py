"""When an experiment is done again: the plan says how often, and a plan that does not means what it meant."""

from __future__ import annotations

import pytest
from support.sample.lanes import Lane, Submission
from support.sample_evidence import sample_round

from roundkit.models.campaign import TestPlan
from roundkit.rules.remeasure import broke_words, is_measured_again, pause_reason
from roundkit.rules.verdict import decide


@pytest.mark.parametrize(("order_repeats", "again"), [(None, 1), (0, 0), (1, 1), (3, 3)])
def test_m02_an_order_effect_is_measured_again_as_often_as_the_plan_says(
    order_repeats: int | None, again: int
) -> None:
    sample = sample_round((Lane("L1", (Submission(0.1),)),))
    record = next(record for record in sample.experiments if record.purpose == "ticket")
    gates = sample.run_spec.gates.model_copy(update={"order_repeats": order_repeats})
    verdict = decide(record, sample.run_spec).model_copy(update={"reason": "order"})
    measured = 0
    while is_measured_again(record, verdict, [record] * measured, gates):
        measured += 1
    assert measured == again


def test_a_pause_says_what_is_known_of_what_broke() -> None:
    sample = sample_round((Lane("L1", (Submission(0.1),)),))
    missing = {"outcome": "baseline-broke", "reason": "baseline-crashed", "detail": "there is no command 'x'"}
    record = sample.experiments[0].model_copy(update=missing)
    said = "baseline-crashed: there is no command 'x'"
    assert pause_reason(record, again=True) == f"the baseline broke: {said}"
    assert broke_words(record) == said
    assert broke_words(record.model_copy(update={"detail": None})) == "baseline-crashed"


def test_m02_plans_from_before_the_field_keep_their_digest() -> None:
    sample = sample_round((Lane("L1", (Submission(0.1),)),))
    tests: TestPlan = sample.plan.campaign.test_plan
    assert b"order_repeats" not in sample.plan.to_bytes()
    assert b'"order_repeats":2' in tests.model_copy(update={"order_repeats": 2}).to_bytes()
