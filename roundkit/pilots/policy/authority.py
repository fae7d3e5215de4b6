"""Whether a pilot may start what could spend money; without authority it is blocked, and says so."""

from __future__ import annotations

from roundkit.core.clock import format_utc, is_expired, now_utc
from roundkit.core.errors import refuse
from roundkit.pilots.policy.folder import PolicyFolder
from roundkit.rules.authority import can_spend
from roundkit.rules.freezing import freeze_lane


def refuse_unauthorized(pilot: PolicyFolder) -> None:
    """Refuse the next run where its agents could spend money that nobody allowed.

    The pilot's authorization covers all of its runs together; each run is charged its whole budget ahead.

    Raises:
        Refused: ``not-authorized``.
    """
    plan = pilot.plan
    lanes = [freeze_lane(lane, plan.campaign, plan.round) for lane in plan.round.lanes]
    if not any(map(can_spend, lanes)):
        return
    allowed, problem = plan.authorization, None
    used = sum(pilot.run(slot).exists() for slot in plan.schedule)
    run_cost = plan.total_budget.micro_usd
    if allowed is None:
        problem = "the plan authorizes nobody to spend money"
    elif is_expired(allowed.until_utc, now_utc()):
        problem = f"the authorization by {allowed.by} ended at {format_utc(allowed.until_utc)}"
    elif run_cost is None:
        problem = "a run may cost any amount: total_budget.micro_usd is not capped"
    elif (used + 1) * run_cost > allowed.micro_usd:
        most = (used + 1) * run_cost
        problem = f"run {used + 1} could bring the cost to {most} micro-USD of {allowed.micro_usd}"
    if problem is not None:
        raise refuse(
            "not-authorized",
            f"the pilot is blocked: {problem}",
            place="plan.json: authorization",
            remedy="freeze a pilot whose plan authorizes it",
        )
