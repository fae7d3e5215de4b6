"""What a round will cost at most, said before it is frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roundkit.models.round_plan import LaneBudget, RoundPlan

_WARM_UPS = 2
_SIDES = 2
_SECONDS_PER_MINUTE = 60.0


@dataclass(frozen=True)
class CostRow:
    """One kind of experiment: what it is for, how often it is run at most, and its trials."""

    purpose: Literal["tickets", "A/A checks", "composition", "standalone", "rerun"]
    experiments: int
    trials: int


@dataclass(frozen=True)
class AgentCap:
    """The most that the agents of all lanes may use of one thing; null is uncapped."""

    dimension: str
    total: int | None


@dataclass(frozen=True)
class Forecast:
    """The most that a round can cost.

    Attributes:
        tickets: Distinct submissions that the caps admit, over all lanes.
        rows: Experiments and trials by purpose.
        trials: All trials together.
        device_minutes: Minutes that devices are held, summed over device sets; null when unknown.
        unknown: Why ``device_minutes`` is null.
        agents: The agents' caps.
    """

    tickets: int
    rows: tuple[CostRow, ...]
    trials: int
    device_minutes: float | None
    unknown: str | None
    agents: tuple[AgentCap, ...]

    def lines(self) -> list[str]:
        """Return the forecast for a person, one line a fact."""
        shown = [f"at most {self.tickets} tickets and {self.trials} trials:"]
        shown += [
            f"  {row.purpose}: {row.experiments} experiment{'' if row.experiments == 1 else 's'},"
            f" {row.trials} trials"
            for row in self.rows
            if row.experiments
        ]
        minutes = self.device_minutes
        shown.append(f"device minutes: {self.unknown if minutes is None else f'at most {minutes:.1f}'}")
        caps = [f"{cap.dimension} {'uncapped' if cap.total is None else cap.total}" for cap in self.agents]
        return [*shown, f"agents, all lanes together: {', '.join(caps)}"]


def forecast(plan: RoundPlan) -> Forecast:
    """Count what a round can cost when every lane uses its submission cap and every ticket passes.

    An experiment is one warm-up a side and two trials a pair. Experiments that are repeated because the
    machine broke them are not counted.
    """
    lanes = len(plan.lanes)
    tickets = sum(lane.submission_cap for lane in plan.lanes)
    fallback = plan.composition.fallback == "best-single"
    per_experiment = _WARM_UPS + _SIDES * plan.gates.ab_ba_pairs
    counts: tuple[tuple[Literal["tickets", "A/A checks", "composition", "standalone", "rerun"], int], ...] = (
        ("tickets", tickets),
        ("A/A checks", 1 + tickets // plan.aa_interval),
        ("composition", lanes - 1),
        ("standalone", lanes if plan.composition.fresh_standalone else 0),
        ("rerun", 2 if fallback else 1),
    )
    rows = tuple(CostRow(purpose, count, count * per_experiment) for purpose, count in counts)
    trials = sum(row.trials for row in rows)
    noise = plan.campaign.test_plan.noise
    trial_s = noise.trial_s if noise else None
    return Forecast(
        tickets=tickets,
        rows=rows,
        trials=trials,
        device_minutes=None if trial_s is None else trials * trial_s / _SECONDS_PER_MINUTE,
        unknown=None
        if trial_s is not None
        else "unknown; time one run of the benchmark and write its seconds to test_plan.noise.trial_s",
        agents=tuple(AgentCap(name, _total(plan, name)) for name in LaneBudget.model_fields),
    )


def _total(plan: RoundPlan, dimension: str) -> int | None:
    caps = [getattr(lane.budget, dimension) for lane in plan.lanes]
    return None if any(cap is None for cap in caps) else sum(caps)
