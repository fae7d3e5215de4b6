"""Who may spend in a pilot: what can cost money starts only under the frozen plan's authorization."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from roundkit.core.clock import format_utc, is_expired
from roundkit.core.errors import Refusal
from roundkit.models.lane_agent import Authorization
from roundkit.models.pilot_plan import PairedPlan
from roundkit.models.pilot_trial import TrialRecord
from roundkit.rules.authority import agent_can_spend


def pilot_can_spend(plan: PairedPlan) -> bool:
    """Say whether a pilot's agents could cost money."""
    return agent_can_spend(plan.model.agent)


def pilot_refusal(plan: PairedPlan, records: Sequence[TrialRecord | None], now: datetime) -> Refusal | None:
    """Return why nothing of a pilot may start under its plan's authorization; null where something may.

    Args:
        plan: The frozen plan.
        records: One for each attempt so far, setup attempts among them; null where it left none.
        now: The time.
    """
    if not pilot_can_spend(plan):
        return None
    authorization = plan.authorization
    if authorization is None:
        return _refusal("the plan authorizes nobody to spend money", "authorization")
    if is_expired(authorization.until_utc, now):
        until = format_utc(authorization.until_utc)
        return _refusal(
            f"the authorization by {authorization.by} ended at {until}", "authorization.until_utc"
        )
    if plan.model.model not in authorization.models:
        allowed = ", ".join(authorization.models)
        what = f"model {plan.model.model!r} is not among the authorized: {allowed}"
        return _refusal(what, "authorization.models")
    return _cap_refusal(plan, authorization, records)


def _cap_refusal(
    plan: PairedPlan, authorization: Authorization, records: Sequence[TrialRecord | None]
) -> Refusal | None:
    worst = plan.policy.caps.micro_usd
    if worst is None:
        return _refusal(
            "a trial may cost any amount",
            "policy.caps.micro_usd",
            "state `policy.caps.micro_usd`, and freeze it",
        )
    taken = sum(max(worst, _spent(record)) for record in records)
    if taken + worst > authorization.micro_usd:
        what = (
            f"{taken} of {authorization.micro_usd} authorized micro-USD are taken at their worst, and one"
            f" more trial may cost {worst}"
        )
        return _refusal(what, "authorization.micro_usd")
    return None


def _spent(record: TrialRecord | None) -> int:
    """Return what an attempt is known to have cost."""
    if record is None or record.agent is None:
        return 0
    return record.agent.usage.micro_usd or 0


def _refusal(what: str, key: str, remedy: str = "") -> Refusal:
    return Refusal(
        "not-authorized",
        f"the pilot is blocked: {what}",
        f"plan.json: {key}",
        remedy or "freeze a pilot whose plan authorizes it",
    )
