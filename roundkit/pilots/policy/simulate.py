"""``pilot simulate``: the owner's files, read, and simulated pilots of their design."""

from __future__ import annotations

from pathlib import Path

from roundkit.core.errors import Refused, refuse
from roundkit.core.progress import SILENT, Progress
from roundkit.models.campaign import CampaignPlan
from roundkit.models.policy_simulation import PolicySimulation
from roundkit.pilots.policy.prepare import read_policy
from roundkit.rounds.prepare_files import read_authored
from roundkit.rules.freezing import gates_in_force
from roundkit.rules.policy_refusals import arms_problems, policy_problems
from roundkit.rules.policy_simulation import SimulatedPilot, simulate_policy
from roundkit.rules.policy_world import SimulatedGates


def simulate_files(
    pilot_file: Path, *, pilots: int | None = None, progress: Progress = SILENT
) -> PolicySimulation:
    """Simulate the pilot of a file; nothing is started, and the repository is not looked at.

    Args:
        pilot_file: The pilot, YAML.
        pilots: How many pilots; what the file assumes unless given.
        progress: Shows how many are done.

    Raises:
        Refused: every problem of the files, or ``no-assumptions``.
    """
    pilot = _design(pilot_file)
    assumed = pilot.draft.assumptions
    if assumed is None:
        raise refuse(
            "no-assumptions",
            "the pilot does not say what to assume",
            place=f"{pilot_file.name}: assumptions",
            remedy="copy that block from templates/pilot-policy/pilot.yaml, and write what you expect",
        )
    if pilots is not None:
        assumed = assumed.model_copy(update={"pilots": pilots})
    with progress.task("simulate", assumed.pilots, "pilots") as task:
        return simulate_policy(pilot, assumed, tick=task.advance)


def _design(pilot_file: Path) -> SimulatedPilot:
    files = read_policy(pilot_file)
    campaign = read_authored(files.campaign, CampaignPlan)
    draft, parallel, serial = files.pilot.model, files.parallel.model, files.serial.model
    refusals = [*files.parallel.refusals, *files.serial.refusals, *campaign.refusals]
    if draft is not None and parallel is not None and serial is not None:
        refusals += arms_problems(parallel, serial, files.serial.at)
        refusals += policy_problems(draft, parallel, files.pilot.at, files.parallel.at)
    if refusals or draft is None or parallel is None or campaign.model is None:
        raise Refused(tuple(dict.fromkeys(refusals)))
    gates = gates_in_force(campaign.model.test_plan, parallel.gates)
    return SimulatedPilot(
        draft=draft,
        lanes={lane.id: lane.attempt_worst_case for lane in parallel.lanes},
        gates=SimulatedGates(
            sigma_min=gates.sigma_min,
            min_gain=gates.min_gain,
            aa_interval=parallel.aa_interval,
            device_sets=len(parallel.device_sets),
            fallback=parallel.composition.fallback == "best-single",
        ),
    )
