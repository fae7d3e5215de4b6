"""P12: simulated pilots near both bounds, and the figures that an owner sees before money is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from roundkit.cli.app import app
from roundkit.models.policy_plan import Assumptions, PolicyDraft
from roundkit.models.policy_simulation import PolicySimulation
from roundkit.models.round_plan import LaneBudget
from roundkit.pilots.policy.example import write_example
from roundkit.rules.policy_simulation import SimulatedPilot, simulate_policy
from roundkit.rules.policy_world import SimulatedGates

LANES = 4
CERTAIN: dict[str, Any] = {
    "pilots": 2, "seed": 1, "agent_minutes": 1.0, "agent_spread": 0.0, "submissions": 1, "build_minutes": 0.0,
    "measurement_minutes": 1.0, "measurement_spread": 0.0, "round_minutes": 0.0, "rejected": 0.0,
    "fruitless": 0.0, "lane_gain": 0.1, "gain_spread": 0.0, "measured_error": 0.0, "overlap": 0.0,
}  # fmt: skip


def simulated(
    device_sets: int = 1, repetitions: int = 3, threshold: float = 0.95, **assumed: Any
) -> PolicySimulation:
    lanes = {f"L{number}": LaneBudget(wall_s=60) for number in range(1, LANES + 1)}
    draft = PolicyDraft.model_validate({
        "format": "roundkit-pilot/1", "kind": "policy", "pilot_id": "p", "campaign_id": "c", "question": "?",
        "seed": 1, "campaign": "campaign.yaml", "rounds": {"P": "round.yaml", "S": "round.yaml"},
        "lanes_per_round": LANES, "repetitions": repetitions, "ratio_threshold": threshold, "fraction": 0.99,
        "reference": {"gain": 1 - 0.9**LANES, "source": "the model"}, "round_s": 60.0,
        "total_budget": {"wall_s": 60 * LANES},
    })  # fmt: skip
    gates = SimulatedGates(2.0, 0.01, aa_interval=10_000, device_sets=device_sets, fallback=True)
    return simulate_policy(SimulatedPilot(draft, lanes, gates), Assumptions(**{**CERTAIN, **assumed}))


def speedup(done: PolicySimulation) -> float:
    parallel, serial = (arm.target_minutes for arm in done.arms)
    assert parallel is not None
    assert serial is not None
    return serial[1] / parallel[1]


def test_p12_where_agents_work_dominates_the_ratio_is_near_n() -> None:
    done = simulated(agent_minutes=10_000.0)
    assert speedup(done) == pytest.approx(LANES, rel=0.01)
    assert {row.outcome: row.share for row in done.decisions}["faster"] == 1.0


def test_p12_where_measurement_dominates_the_ratio_is_near_one() -> None:
    done = simulated(agent_minutes=0.001, submissions=60)
    assert speedup(done) == pytest.approx(1.0, rel=0.03)
    assert {row.outcome: row.share for row in done.decisions}["not distinguishable"] == 1.0


@pytest.mark.parametrize("device_sets", [2, 3, 4])
def test_p12_device_sets_divide_the_term_of_measurement(device_sets: int) -> None:
    done = simulated(device_sets, agent_minutes=0.001, submissions=240)
    assert speedup(done) == pytest.approx(device_sets, rel=0.03)


@pytest.mark.parametrize("minutes", [1.0, 5.0, 25.0])
@pytest.mark.parametrize("device_sets", [1, 2])
def test_p12_a_simulated_round_takes_no_less_than_its_bound(minutes: float, device_sets: int) -> None:
    done = simulated(device_sets, agent_minutes=minutes, submissions=3)
    parallel, serial = (arm.target_minutes for arm in done.arms)
    assert parallel is not None
    assert serial is not None
    assert parallel[1] >= done.parallel_bound
    # One check and one rerun a round of S: what the bound leaves out.
    assert serial[1] == pytest.approx(done.serial_bound + 2 * LANES)


def test_p12_waits_grow_with_lanes_on_one_device_set() -> None:
    done = simulated(agent_minutes=1.0, submissions=4)
    parallel, serial = (arm.wait_minutes for arm in done.arms)
    assert parallel is not None
    assert serial is not None
    assert parallel[2] > serial[2]


def test_p12_runs_are_censored_where_directions_are_fruitless() -> None:
    done = simulated(fruitless=1.0)
    assert [arm.censored for arm in done.arms] == [1.0, 1.0]
    assert [arm.target_minutes for arm in done.arms] == [None, None]
    assert [arm.final_gain for arm in done.arms] == [(0.0, 0.0, 0.0)] * 2
    assert done.median_ratio is None


def test_p12_the_same_seed_gives_the_same_figures() -> None:
    noisy = {"agent_spread": 0.4, "fruitless": 0.3, "measured_error": 0.01, "rejected": 0.2, "pilots": 20}
    assert simulated(**noisy) == simulated(**noisy)
    assert simulated(**noisy) != simulated(**noisy, seed=2)


def test_p12_power_rises_with_the_difference() -> None:
    noisy: dict[str, Any] = {"agent_spread": 0.5, "pilots": 40, "submissions": 8, "threshold": 0.8}
    near = simulated(agent_minutes=2.0, **noisy)
    far = simulated(agent_minutes=50.0, **noisy)
    share = [next(row.share for row in done.decisions if row.outcome == "faster") for done in (near, far)]
    assert share[0] < share[1]


def test_p12_the_command_prints_power_and_cost(tmp_path: Path) -> None:
    pilot = write_example(tmp_path / "example")
    out = tmp_path / "simulation.json"
    done = CliRunner().invoke(app, ["pilot", "simulate", str(pilot), "--pilots", "5", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "equal arms would be called faster in at most 3.1%" in done.output
    figures = json.loads(out.read_bytes())
    assert figures["format"] == "roundkit-policy-simulation/1"
    assert sum(row["share"] for row in figures["decisions"]) == pytest.approx(1.0)
