"""Whether the rounds of a policy pilot are what its plan says: each audits, and both arms are alike."""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.audit.findings import Check, Disagreement, conclude
from roundkit.audit.policy_material import PolicyMaterial, RunMaterial
from roundkit.audit.run import audit_round
from roundkit.evidence import policy_layout as layout
from roundkit.models.policy_plan import PolicyPlan
from roundkit.models.round_plan import FrozenLane, RoundPlan
from roundkit.rules.freezing import freeze_lane, gates_in_force
from roundkit.rules.policy_run import RoundView, step_after

_OF_THE_ROUND = frozenset({"round_id", "deadline_utc", "lanes", "gates", "protected_paths", "authorization"})
"""What differs from round to round, or is looked at by itself."""


def check_rounds(material: PolicyMaterial) -> list[Check]:
    """Audit every round by itself, then hold all of them against the plan."""
    checks, rounds = [], 0
    found: list[Disagreement] = []
    for run in material.runs:
        for evidence in run.rounds:
            rounds += 1
            where = f"{run.folder}/{layout.ROUNDS}/{evidence.plan.round_id}"
            checks += [
                Check("rounds", False, f"{where}: {check.where}", f"{check.name}: {check.detail}")
                for check in audit_round(evidence.path).failures
            ]
        found += _run_problems(material.plan, run)
    agreed = f"{rounds} rounds audit, and have the plan's gates, devices, lanes and agents"
    told = conclude("rounds", found, agreed)
    return [*checks, *(check for check in told if not (checks and check.passed))]


def _run_problems(plan: PolicyPlan, run: RunMaterial) -> Iterator[Disagreement]:
    views = run.views()
    for number, view in enumerate(views, 1):
        where = f"{run.folder}/{layout.ROUNDS}/{view.plan.round_id}"
        name = layout.round_name(run.slot, number)
        if view.plan.round_id != name or run.rounds[number - 1].path.name != name:
            yield Disagreement(where, f"is not round {name}")
        yield from (Disagreement(where, what) for what in _differences(plan, view.plan))
        yield from (Disagreement(where, what) for what in _beginning(plan, views[:number]))
        step = step_after(plan, run.slot, views[: number - 1])
        if step != tuple(lane.id for lane in view.plan.lanes):
            yield Disagreement(where, f"the frozen rules ask for {step}")
    if run.end is not None and run.end.process == "completed":
        step = step_after(plan, run.slot, views)
        if not isinstance(step, str):
            yield Disagreement(run.folder, f"ended although the frozen rules ask for a round of {step}")


def _beginning(plan: PolicyPlan, views: tuple[RoundView, ...]) -> Iterator[str]:
    """Yield a round that does not start from I0, or from what the round before it made."""
    current = views[-1].plan
    if len(views) == 1:
        if (current.incumbent, current.incumbent_tree) != (plan.incumbent, plan.incumbent_tree):
            yield "does not start from I0"
    elif current.incumbent_tree != views[-2].ledger.head_tree:
        yield "does not start from the incumbent of the round before"


def _differences(plan: PolicyPlan, round_: RoundPlan) -> Iterator[str]:
    """Yield what a round has otherwise than the pilot: both arms have the same of everything."""
    template = plan.round
    for name in sorted(set(type(template).model_fields) - _OF_THE_ROUND - {"format"}):
        if getattr(template, name) != getattr(round_, name):
            yield f"{name} is not the pilot's"
    if round_.gates != gates_in_force(plan.campaign.test_plan, template.gates):
        yield "gates are not the pilot's"
    if round_.authorization != plan.authorization:
        yield "authorization is not the pilot's"
    if not set(template.protected_paths) <= set(round_.protected_paths):
        yield "protected_paths are not all of the pilot's"
    for name in ("metric", "benchmark", "validator", "build", "smoke", "test_plan", "environment", "limits"):
        if getattr(round_.campaign, name) != getattr(plan.campaign, name):
            yield f"campaign.{name} is not the pilot's"
    frozen = {lane.id: freeze_lane(lane, plan.campaign, template) for lane in template.lanes}
    for lane in round_.lanes:
        if _plain(lane) != _plain(frozen.get(lane.id)):
            yield f"lane {lane.id} is not the pilot's"


def _plain(lane: FrozenLane | None) -> object:
    """Return a lane without its deadline, which is its round's."""
    return lane.model_copy(update={"deadline_utc": None}) if lane is not None else None
