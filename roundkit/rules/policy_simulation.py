"""Whole simulated policy pilots, decided by the rule that decides real ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, median

import numpy as np

from roundkit.models.policy_plan import ARMS, Arm, Assumptions, PolicyDraft
from roundkit.models.policy_run import DecisionName
from roundkit.models.policy_simulation import PolicySimulation, SimulatedArm, SimulatedShare
from roundkit.models.round_plan import LaneBudget
from roundkit.rules.policy_cost import Workload, parallel_bound, serial_bound
from roundkit.rules.policy_decision import RunResult, decide_policy, equal_arms_say_faster, time_of
from roundkit.rules.policy_stopping import RunRules
from roundkit.rules.policy_world import SimulatedGates, SimulatedRun, World

_DECISIONS: tuple[DecisionName, ...] = ("faster", "not distinguishable", "slower")
_POINTS = (5.0, 50.0, 95.0)


@dataclass(frozen=True)
class SimulatedPilot:
    """The design that is simulated.

    Attributes:
        draft: The pilot as its owner writes it.
        lanes: Every lane in the frozen order, with what one attempt of it is charged.
        gates: What decides about candidates.
    """

    draft: PolicyDraft
    lanes: dict[str, LaneBudget]
    gates: SimulatedGates

    def rules(self, arm: Arm) -> RunRules:
        """Return the rules of an arm's runs."""
        return RunRules(
            order=tuple(self.lanes),
            worst=self.lanes,
            total=self.draft.total_budget,
            width=self.draft.lanes_per_round if arm == "P" else 1,
            target_gain=self.draft.fraction * self.draft.reference.gain,
        )


def simulate_policy(
    pilot: SimulatedPilot, assumed: Assumptions, *, tick: Callable[[], None] = lambda: None
) -> PolicySimulation:
    """Simulate pilots and decide each by the frozen rule.

    Args:
        pilot: The design.
        assumed: What is taken for granted.
        tick: Called after every pilot.
    """
    draft = pilot.draft
    rules = {arm: pilot.rules(arm) for arm in ARMS}
    decisions: Counter[DecisionName] = Counter()
    runs: dict[Arm, list[SimulatedRun]] = {"P": [], "S": []}
    ratios: list[float] = []
    for number in range(assumed.pilots):
        world = World(assumed, pilot.gates, Random(f"{assumed.seed}/{number}"))  # noqa: S311
        made = {arm: [world.run(rules[arm]) for _ in range(draft.repetitions)] for arm in ARMS}
        verdict = decide_policy(_results(made["P"]), _results(made["S"]), draft.ratio_threshold)
        decisions[verdict.decision] += 1
        if verdict.median_ratio is not None and math.isfinite(verdict.median_ratio):
            ratios.append(verdict.median_ratio)
        for arm in ARMS:
            runs[arm] += made[arm]
        tick()
    everything = [run for arm in ARMS for run in runs[arm]]
    work = workload(pilot, assumed)
    return PolicySimulation(
        format="roundkit-policy-simulation/1",
        pilot_id=draft.pilot_id,
        lanes=len(pilot.lanes),
        lanes_per_round=draft.lanes_per_round,
        device_sets=pilot.gates.device_sets,
        repetitions=draft.repetitions,
        assumptions=assumed,
        decisions=tuple(_share(name, decisions[name], assumed.pilots) for name in _DECISIONS),
        equal_arms_faster=equal_arms_say_faster(draft.repetitions),
        median_ratio=median(ratios) if ratios else None,
        serial_bound=serial_bound(work),
        parallel_bound=parallel_bound(work),
        arms=tuple(_arm(arm, runs[arm]) for arm in ARMS),
        pilot_minutes=sum(run.minutes for run in everything) / assumed.pilots,
        pilot_device_minutes=sum(run.device_minutes for run in everything) / assumed.pilots,
        pilot_attempts=sum(run.attempts for run in everything) / assumed.pilots,
    )


def workload(pilot: SimulatedPilot, assumed: Assumptions) -> Workload:
    """Return what the two bounds depend on, in minutes."""
    return Workload(
        lanes=pilot.draft.lanes_per_round,
        agent=assumed.agent_minutes,
        submissions=assumed.submissions,
        measurement=assumed.measurement_minutes,
        device_sets=pilot.gates.device_sets,
    )


def _results(runs: Sequence[SimulatedRun]) -> list[RunResult]:
    return [
        RunResult(time_of(run.target_minutes, censored=run.target_minutes is None), run.final_gain)
        for run in runs
    ]


def _share(name: DecisionName, count: int, pilots: int) -> SimulatedShare:
    share = count / pilots
    return SimulatedShare(outcome=name, share=share, standard_error=math.sqrt(share * (1.0 - share) / pilots))


def _arm(arm: Arm, runs: Sequence[SimulatedRun]) -> SimulatedArm:
    reached = [run.target_minutes for run in runs if run.target_minutes is not None]
    waits = [wait for run in runs for wait in run.wait_minutes]
    return SimulatedArm(
        arm=arm,
        runs=len(runs),
        censored=1.0 - len(reached) / len(runs),
        target_minutes=_points(reached) if reached else None,
        minutes=_points([run.minutes for run in runs]),
        final_gain=_points([run.final_gain for run in runs]),
        device_minutes=_points([run.device_minutes for run in runs]),
        wait_minutes=_points(waits) if waits else None,
        attempts=fmean(run.attempts for run in runs),
        rounds=fmean(run.rounds for run in runs),
        experiments=fmean(run.experiments for run in runs),
    )


def _points(values: Sequence[float]) -> tuple[float, float, float]:
    low, middle, high = (float(value) for value in np.percentile(values, _POINTS))
    return low, middle, high
