"""The order of a policy pilot, when its runs end, what it costs, and how its queue turns."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundkit.models.attempts import Cost
from roundkit.models.round_plan import LaneBudget
from roundkit.rules.policy_cost import (
    Workload,
    parallel_bound,
    parallel_experiments,
    ratio_of_bounds,
    serial_bound,
    serial_experiments,
)
from roundkit.rules.policy_order import next_lanes, policy_schedule, schedule_digest
from roundkit.rules.policy_queue import Submission, VirtualQueue, VirtualTicket, drain, serve_virtually
from roundkit.rules.policy_stopping import RunRules, chained_gain, next_step
from roundkit.stats.survival import product_limit

ORDER = ("L1", "L2", "L3", "L4")


@given(st.integers(0, 2**31), st.integers(3, 9))
def test_p11_every_run_once_pairs_together_and_the_first_arm_alternates(seed: int, repetitions: int) -> None:
    schedule = policy_schedule(seed, repetitions)
    assert [slot.order for slot in schedule] == list(range(1, 2 * repetitions + 1))
    assert Counter(slot.run_id for slot in schedule) == {
        f"{arm}.{number}": 1 for arm in "PS" for number in range(1, repetitions + 1)
    }
    pairs = [schedule[at : at + 2] for at in range(0, len(schedule), 2)]
    assert all(one.repetition == other.repetition for one, other in pairs)
    firsts = [pair[0].arm for pair in pairs]
    assert all(one != other for one, other in pairwise(firsts))
    assert schedule_digest(schedule) == schedule_digest(policy_schedule(seed, repetitions))


def test_p11_the_seed_decides_which_arm_begins() -> None:
    assert {policy_schedule(seed, 3)[0].arm for seed in range(20)} == {"P", "S"}


def test_the_next_lanes_go_round_in_the_frozen_order() -> None:
    assert next_lanes(ORDER, ORDER, None, 1) == ("L1",)
    assert next_lanes(ORDER, ORDER, "L1", 1) == ("L2",)
    assert next_lanes(ORDER, {"L1", "L3"}, "L3", 2) == ("L1", "L3")
    assert next_lanes(ORDER, {"L2"}, "L4", 4) == ("L2",)
    assert next_lanes(ORDER, (), "L4", 4) == ()


def test_gains_of_rounds_multiply_what_is_left() -> None:
    assert chained_gain([0.5, 0.2]) == pytest.approx(0.6)
    assert chained_gain([]) == 0.0


@pytest.mark.parametrize(
    ("gain", "charged", "planned", "step"),
    [
        (0.0, 0, ORDER, ("L3", "L4")),
        (0.39, 0, ORDER, ("L3", "L4")),
        (0.4, 0, ORDER, "target"),
        (0.0, 30, ORDER, ("L3",)),
        (0.0, 40, ORDER, "budget"),
        (0.0, 0, (), "nothing-planned"),
        (0.0, 40, (), "nothing-planned"),
        (0.0, 10, ("L2",), ("L2",)),
    ],
)
def test_a_run_ends_at_the_target_or_its_budget(
    gain: float, charged: int, planned: tuple[str, ...], step: object
) -> None:
    budget = LaneBudget(wall_s=10)
    rules = RunRules(ORDER, dict.fromkeys(ORDER, budget), LaneBudget(wall_s=40), 2, 0.4)
    assert next_step(rules, gain=gain, charged=Cost(wall_s=charged), planned=planned, last="L2") == step


def test_p12_the_cost_model_counts_the_same_for_both() -> None:
    assert parallel_experiments(4, 2).total == serial_experiments(4, 2).total == 12
    assert parallel_experiments(4, 2).steps == 3
    assert serial_experiments(4, 2).reruns == 4


@pytest.mark.parametrize(
    ("work", "ratio"),
    [
        (Workload(4, 1000.0, 1, 0.001, 1), 4.0),
        (Workload(4, 0.001, 2, 1000.0, 1), 1.0),
        (Workload(4, 0.001, 2, 1000.0, 2), 2.0),
        (Workload(4, 0.001, 2, 1000.0, 4), 4.0),
        (Workload(4, 0.001, 2, 1000.0, 9), 4.0),
    ],
)
def test_p12_the_bounds_at_their_extremes(work: Workload, ratio: float) -> None:
    assert ratio_of_bounds(work) == pytest.approx(ratio, rel=1e-3)
    assert parallel_bound(work) <= serial_bound(work)


def test_the_virtual_queue_takes_turns_as_serve_does() -> None:
    queue = VirtualQueue(["L1", "L2"], 1, 100, None)
    for sequence, lane in enumerate(("L1", "L1", "L1", "L2")):
        queue.add(VirtualTicket(lane, sequence, 1.0, 0.0))
    served = []
    now = 0.0
    while started := queue.start(now):
        [(now, ticket)] = started
        assert ticket is not None
        served.append((ticket.lane, ticket.sequence))
        queue.finish(ticket)
    assert served == [("L1", 0), ("L2", 3), ("L1", 1), ("L1", 2)]


def test_the_virtual_queue_checks_the_incumbent_first_and_then_every_k() -> None:
    queue = VirtualQueue(["L1"], 2, 2, lambda: 3.0)
    tickets = [VirtualTicket("L1", sequence, 1.0, 0.0) for sequence in range(4)]
    assert drain(tickets, queue) == 3.0 + 1.0 + 3.0
    assert queue.checks == 2
    assert queue.waited[0] == 3.0


def test_a_virtual_agent_waits_for_its_verdict() -> None:
    queue = VirtualQueue(["L1"], 1, 100, None)
    submissions = [Submission(10.0, 1.0, 5.0), Submission(10.0, 1.0, None)]
    served = serve_virtually({"L1": submissions}, queue)
    assert served.minutes == 10 + 1 + 5 + 10 + 1
    assert queue.busy == 5.0


def test_product_limit_counts_the_censored_as_there_until_they_go() -> None:
    steps = product_limit([(1.0, True), (2.0, False), (3.0, True), (4.0, True)])
    assert [(step.time, step.share) for step in steps] == [
        (1.0, 0.75), (2.0, 0.75), (3.0, pytest.approx(0.375)), (4.0, 0.0),
    ]  # fmt: skip
    assert product_limit([]) == ()
