"""When a run of a policy pilot ends, and how its gains and charges add up over rounds."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from roundkit.models.attempts import AttemptRecord, Cost
from roundkit.models.policy_plan import Arm, PolicyPlan
from roundkit.models.policy_run import RunEnd
from roundkit.models.round_plan import LaneBudget
from roundkit.rules.policy_order import next_lanes
from roundkit.stats.rounding import round_gain

DIMENSIONS: tuple[str, ...] = tuple(LaneBudget.model_fields)


@dataclass(frozen=True)
class RunRules:
    """What decides about the next round of a run, all of it frozen.

    Attributes:
        order: Every lane in the frozen order.
        worst: What one attempt of each lane is charged.
        total: What the attempts of a run may be charged together.
        width: How many lanes a round has at most.
        target_gain: The gain at which a run ends.
    """

    order: tuple[str, ...]
    worst: Mapping[str, LaneBudget]
    total: LaneBudget
    width: int
    target_gain: float


def rules_of(plan: PolicyPlan, arm: Arm) -> RunRules:
    """Return the rules of an arm's runs."""
    lanes = plan.round.lanes
    return RunRules(
        order=tuple(lane.id for lane in lanes),
        worst={lane.id: lane.attempt_worst_case for lane in lanes},
        total=plan.total_budget,
        width=plan.lanes_of(arm),
        target_gain=plan.target_gain,
    )


def chained_gain(gains: Iterable[float]) -> float:
    """Return the gain of several rounds one after the other, a fraction.

    A gain is ``1 - exp(-delta)``, and log gains add: the whole is ``1 - product(1 - gain)``. It is rounded
    as recorded gains are, so that it is the same on every machine.
    """
    return round_gain(1.0 - math.prod(1.0 - gain for gain in gains))


def reaches(gain: float, target: float) -> bool:
    """Say whether a gain is the target or more."""
    return gain >= target


def charge_of(attempts: Iterable[AttemptRecord]) -> Cost:
    """Return what attempts are charged: the worst case of each; a dimension that nobody capped is null."""
    worst = [(record.binding.worst_case, record.binding.tries) for record in attempts]
    totals = {}
    for name in DIMENSIONS:
        amounts = [getattr(budget, name) for budget, _ in worst]
        known = all(amount is not None for amount in amounts)
        totals[name] = sum(a * tries for a, (_, tries) in zip(amounts, worst, strict=True)) if known else None
    return Cost(**totals)


def sum_costs(costs: Sequence[Cost]) -> Cost:
    """Return costs added up; what one of them does not know is null."""
    totals = {}
    for name in DIMENSIONS:
        amounts = [getattr(cost, name) for cost in costs]
        totals[name] = None if any(amount is None for amount in amounts) else sum(amounts)
    return Cost(**totals)


def lanes_that_fit(
    lanes: Sequence[str], worst: Mapping[str, LaneBudget], charged: Cost, total: LaneBudget
) -> tuple[str, ...]:
    """Return the lanes, in order, whose attempts fit what is left of a run's budget."""
    taken = {name: getattr(charged, name) or 0 for name in DIMENSIONS}
    fitting: list[str] = []
    for lane in lanes:
        needs = {name: getattr(worst[lane], name) or 0 for name in DIMENSIONS}
        caps = {name: getattr(total, name) for name in DIMENSIONS}
        if all(caps[name] is None or taken[name] + needs[name] <= caps[name] for name in DIMENSIONS):
            fitting.append(lane)
            taken = {name: taken[name] + needs[name] for name in DIMENSIONS}
    return tuple(fitting)


def next_step(
    rules: RunRules, *, gain: float, charged: Cost, planned: Collection[str], last: str | None
) -> tuple[str, ...] | RunEnd:
    """Return the lanes of a run's next round, or why there is none.

    Args:
        rules: What was frozen.
        gain: Of the run's incumbent over its first one.
        charged: What its attempts were charged so far.
        planned: Lanes whose entry is planned.
        last: The lane that was tried last.
    """
    if reaches(gain, rules.target_gain):
        return "target"
    waiting = next_lanes(rules.order, planned, last, len(rules.order))
    if not waiting:
        return "nothing-planned"
    return lanes_that_fit(waiting, rules.worst, charged, rules.total)[: rules.width] or "budget"
