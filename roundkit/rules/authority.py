"""Who may spend: an agent that can cost money starts only under the authorization of the frozen plan."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime

from roundkit.core.clock import format_utc, is_expired
from roundkit.core.errors import Refusal
from roundkit.models.attempts import AttemptRecord
from roundkit.models.base import Provenance
from roundkit.models.lane_agent import Authorization, LaneAgent
from roundkit.models.round_plan import FrozenLane, HarnessName, RoundPlan

AGENT_HARNESSES: frozenset[HarnessName] = frozenset({"claude", "codex", "swarmflow", "command"})


def agent_provenance(lane: FrozenLane) -> Provenance:
    """Return what fills a lane when its harness runs; a ``none`` lane is a person's."""
    if lane.harness in AGENT_HARNESSES:
        return (lane.agent or LaneAgent()).provenance
    return "replay" if lane.harness == "replay" else "person"


def filled_by(lane: FrozenLane, attempts: Sequence[AttemptRecord]) -> Provenance:
    """Return what fills a lane now: its last agent that was started, or else a person."""
    if lane.harness == "replay":
        return "replay"
    started = [record for record in attempts if record.claimed_utc is not None]
    return started[-1].provenance if started else "person"


def can_spend(lane: FrozenLane) -> bool:
    """Say whether a lane's agent could cost money: a model answers it, or it reaches beyond this machine."""
    if lane.harness not in AGENT_HARNESSES:
        return False
    return agent_can_spend(lane.agent or LaneAgent())


def agent_can_spend(agent: LaneAgent) -> bool:
    """Say whether an agent could cost money, whatever it is set to."""
    return agent.provenance == "model" or not all(map(_is_loopback, agent.hosts))


def authority_refusal(
    plan: RoundPlan,
    lane: FrozenLane,
    attempts: Sequence[AttemptRecord],
    now: datetime,
    *,
    more: bool,
    tries: int = 1,
) -> Refusal | None:
    """Return why a lane's agent may not start under the plan's authorization.

    Args:
        plan: The frozen plan.
        lane: The lane.
        attempts: Every attempt of the round, of all lanes.
        now: The time.
        more: Whether one more attempt of the lane is asked for, so that its worst case must fit too.
        tries: How many tries that one is charged for.
    """
    if not can_spend(lane):
        return None
    authorization = plan.authorization
    if authorization is None:
        return _refusal(lane, "the plan authorizes nobody to spend money", "authorization")
    if is_expired(authorization.until_utc, now):
        until = format_utc(authorization.until_utc)
        return _refusal(lane, f"the authorization by {authorization.by} ended at {until}", "until_utc")
    if lane.model not in authorization.models:
        allowed = ", ".join(authorization.models)
        return _refusal(lane, f"model {lane.model!r} is not among the authorized: {allowed}", "models")
    return _cap_refusal(plan, authorization, lane, attempts, more=tries if more else 0)


def authority_problems(plan: RoundPlan, attempts: Sequence[AttemptRecord]) -> list[str]:
    """Return what attempts were made without authority, for whoever recomputes a round."""
    problems = []
    lanes = {lane.id: lane for lane in plan.lanes}
    for position, record in enumerate(attempts):
        lane = lanes.get(record.binding.lane)
        if lane is None or record.provenance in {"person", "replay"}:
            continue
        for moment in filter(None, (record.reserved_utc, record.claimed_utc)):
            refusal = authority_refusal(plan, lane, attempts[: position + 1], moment, more=False)
            if refusal is not None:
                problems.append(f"attempt {record.binding.ordinal} of lane {lane.id}: {refusal.message}")
                break
    return problems


def _cap_refusal(
    plan: RoundPlan,
    authorization: Authorization,
    lane: FrozenLane,
    attempts: Sequence[AttemptRecord],
    *,
    more: int,
) -> Refusal | None:
    spending = {other.id for other in plan.lanes if can_spend(other)}
    taken = [_held(record, more=more > 0) for record in attempts if record.binding.lane in spending]
    costs = [*taken, *[lane.attempt_worst_case.micro_usd] * more]
    known = [cost for cost in costs if cost is not None]
    if len(known) != len(costs):
        remedy = "state attempt_worst_case.micro_usd for every lane that can spend"
        return _refusal(lane, "an attempt may cost any amount", "micro_usd", remedy)
    if sum(known) > authorization.micro_usd:
        what = f"{sum(known)} micro-USD would be taken of the {authorization.micro_usd} that are authorized"
        return _refusal(lane, what, "micro_usd")
    return None


def _held(record: AttemptRecord, *, more: bool) -> int | None:
    """Return what an attempt takes of the cap; a cost beyond its worst case keeps others from starting."""
    worst = record.binding.worst_case.micro_usd
    actual = record.actual.micro_usd if record.actual is not None else None
    return max(worst, actual) if more and worst is not None and actual is not None else worst


def _refusal(lane: FrozenLane, what: str, key: str, remedy: str = "") -> Refusal:
    place = "authorization" if key == "authorization" else f"authorization.{key}"
    return Refusal(
        "not-authorized",
        f"lane {lane.id} is blocked: {what}",
        f"round-plan.json: {place}",
        remedy or "freeze a round whose plan authorizes it, or fill the lane by hand",
    )


def _is_loopback(host: str) -> bool:
    name = host.rpartition(":")[0] if host.count(":") == 1 else host.partition("]")[0].lstrip("[")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
