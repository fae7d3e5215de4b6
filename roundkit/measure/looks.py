"""Looking at an experiment while it runs, to end it once its plan says so."""

from __future__ import annotations

import math

from roundkit.models.campaign import Direction
from roundkit.models.measurement import LookPlan, SessionNoise
from roundkit.models.trial import Side, Trial
from roundkit.stats.differences import paired_differences
from roundkit.stats.estimate import Order, Statistic, crossover_estimate
from roundkit.stats.sequential import Schedule, decide_look, stated_schedule


class Looks:
    """Collects pairs as they end, and says at each look whether the experiment ends there.

    Args:
        plan: The looks; None for an experiment that has every pair.
        noise: What weakens its evidence.
        direction: Whether less or more of the metric is better.
    """

    def __init__(self, plan: LookPlan | None, noise: SessionNoise | None, direction: Direction) -> None:
        self._statistic: Statistic | None = None if plan is None else plan.statistic
        self._plan: Schedule | None = None
        if plan is not None:
            self._plan = stated_schedule(
                plan.looks,
                plan.boundaries,
                futility_power=plan.futility_power,
                futility_optimism=plan.futility_optimism,
            )
        self._tau = 0.0 if noise is None else math.sqrt(noise.variance)
        self._direction = direction
        self._open: dict[Side, float] = {}
        self._baseline: list[float] = []
        self._candidate: list[float] = []
        self._orders: list[Order] = []

    def ended_by(self, trial: Trial) -> bool:
        """Take one valid trial, in the order in which they ran, and say whether it was the last one."""
        if self._plan is None or trial.planned.pair is None or trial.value is None:
            return False
        self._open[trial.planned.side] = trial.value
        if len(self._open) < 2:
            return False
        self._baseline.append(self._open.pop("baseline"))
        self._candidate.append(self._open.pop("candidate"))
        self._orders.append(trial.planned.order)
        if len(self._orders) not in self._plan.looks:
            return False
        differences = paired_differences(self._baseline, self._candidate, self._direction)
        estimate = crossover_estimate(differences, self._orders, statistic=self._statistic, tau=self._tau)
        return decide_look(estimate, self._plan).stop is not None
