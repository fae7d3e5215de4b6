"""What rounds of N lanes and N rounds of one lane cost: counts of experiments, and two bounds on time.

Let a lane's agent work A minutes and submit s candidates that take M minutes each to measure, on D device
sets. A lane alone takes A + sM. One after the other, N of them take N(A + sM). Side by side they take no
less than one of them alone, and no less than all their measurements on D sets: max(A + sM, N·s·M / D). The
ratio of the two nears N where agents' work dominates and D, so 1 on a single set, where measurement does.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Workload:
    """What the bounds depend on.

    Attributes:
        lanes: N.
        agent: A, in whatever unit of time all results have.
        submissions: s, candidates a lane.
        measurement: M, in the same unit.
        device_sets: D.
    """

    lanes: int
    agent: float
    submissions: float
    measurement: float
    device_sets: int


@dataclass(frozen=True)
class ExperimentCount:
    """How many experiments something needs, A/A checks apart."""

    tickets: float
    steps: int
    reruns: int

    @property
    def total(self) -> float:
        """Return all of them."""
        return self.tickets + self.steps + self.reruns


def serial_bound(work: Workload) -> float:
    """Return N(A + sM), what N rounds of one lane take without their closes."""
    return work.lanes * (work.agent + work.submissions * work.measurement)


def parallel_bound(work: Workload) -> float:
    """Return max(A + sM, N·s·M / D), what one round of N lanes takes without its close."""
    alone = work.agent + work.submissions * work.measurement
    return max(alone, work.lanes * work.submissions * work.measurement / work.device_sets)


def ratio_of_bounds(work: Workload) -> float | None:
    """Return how much faster the bounds let P be; null where nothing takes time."""
    parallel = parallel_bound(work)
    return serial_bound(work) / parallel if parallel else None


def parallel_experiments(lanes: int, submissions: float) -> ExperimentCount:
    """Return what one round of N passing lanes measures: its tickets, N - 1 steps and one rerun."""
    return ExperimentCount(lanes * submissions, max(0, lanes - 1), 1)


def serial_experiments(lanes: int, submissions: float) -> ExperimentCount:
    """Return what N rounds of one passing lane measure: their tickets and N reruns."""
    return ExperimentCount(lanes * submissions, 0, lanes)
