"""What ``pilot simulate`` says before anything is spent: how often each decision, how long, what it costs."""

from __future__ import annotations

from typing import Literal

from roundkit.models.base import Count, Fraction, Identifier, Record
from roundkit.models.policy_plan import Arm, Assumptions
from roundkit.models.policy_run import DecisionName


class SimulatedShare(Record):
    """How often something came out, with the standard error of the simulation itself.

    Attributes:
        outcome: Which decision.
        share: Share of the simulated pilots.
        standard_error: Of that share.
    """

    outcome: DecisionName
    share: Fraction
    standard_error: float


class SimulatedArm(Record):
    """One arm's runs over all simulated pilots; medians with the 5 % and 95 % points.

    Attributes:
        runs: How many runs were simulated.
        censored: Share of runs that never reached the target.
        target_minutes: Of the runs that did; null where none did.
        minutes: From the first launch to the end, of all runs.
        final_gain: Of all runs.
        device_minutes: A run's, over all device sets.
        wait_minutes: Of tickets for a device set; null where none was measured.
        attempts: Mean of a run.
        rounds: Mean of a run.
        experiments: Mean of a run, A/A checks apart.
    """

    arm: Arm
    runs: Count
    censored: Fraction
    target_minutes: tuple[float, float, float] | None
    minutes: tuple[float, float, float]
    final_gain: tuple[float, float, float]
    device_minutes: tuple[float, float, float]
    wait_minutes: tuple[float, float, float] | None
    attempts: float
    rounds: float
    experiments: float


class PolicySimulation(Record):
    """A simulated policy pilot. Its clock is virtual; queue, order, selection and decision are the real ones.

    Attributes:
        lanes_per_round: Lanes in one round of ``P``.
        assumptions: What was taken for granted.
        decisions: Share of pilots with each decision.
        equal_arms_faster: Share at most of pilots in which two equal arms are called ``faster``.
        median_ratio: Median over pilots of their median ratio P to S, where it is finite; null where none is.
        serial_bound: N(A + sM) in minutes, for all lanes once.
        parallel_bound: max(A + sM, N·s·M / D) in minutes, for one round of N lanes.
        arms: What came of each arm.
        pilot_minutes: Mean wall clock of one whole pilot, run after run.
        pilot_device_minutes: Mean of one whole pilot, over all device sets.
        pilot_attempts: Mean number of agents' attempts of one whole pilot.
    """

    format: Literal["roundkit-policy-simulation/1"]
    pilot_id: Identifier
    lanes: Count
    lanes_per_round: Count
    device_sets: Count
    repetitions: Count
    assumptions: Assumptions
    decisions: tuple[SimulatedShare, ...]
    equal_arms_faster: Fraction
    median_ratio: float | None
    serial_bound: float
    parallel_bound: float
    arms: tuple[SimulatedArm, ...]
    pilot_minutes: float
    pilot_device_minutes: float
    pilot_attempts: float
