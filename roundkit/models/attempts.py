"""Attempts: one run of a lane's agent, bound to the lane's frozen budget, and what it cost."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from roundkit.models.agent_run import AgentRun
from roundkit.models.base import Count, Digest, Identifier, Provenance, Record, UtcTime, is_missing
from roundkit.models.round_plan import LaneBudget

AttemptPhase = Literal["reserved", "claimed", "settled", "cancelled"]
RunId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,190}/[1-9][0-9]{0,8}$")]


def _is_one(value: object) -> bool:
    return value == 1


class Cost(Record):
    """What something cost, from named counters; null where nobody counted.

    Attributes:
        turns: Turns of the agent.
        tokens: Tokens of its model.
        micro_usd: Millionths of a US dollar.
        wall_s: Seconds on the coordinator's clock, rounded up.
    """

    turns: Count | None = None
    tokens: Count | None = None
    micro_usd: Count | None = None
    wall_s: Count | None = None


class AttemptBinding(Record):
    """What one attempt is, before anything runs; the same attempt has the same binding for good.

    Attributes:
        round_digest: The frozen plan.
        lane: The lane whose budget is charged.
        ordinal: Number of the attempt within its lane, from 1.
        plan_digest: Identity of the attempt, which follows from the three above.
        run_id: The workflow run that asked for it and the ordinal, ``<workflow run>/<ordinal>``.
        worst_case: What it is charged, the lane's frozen cap of one attempt, once for each try.
        tries: How often an engine that somebody else runs may run its agent; roundkit itself runs it once.
    """

    round_digest: Digest
    lane: Identifier
    ordinal: Annotated[int, Field(ge=1)]
    plan_digest: Digest
    run_id: RunId
    worst_case: LaneBudget
    tries: Annotated[int, Field(ge=1, le=100)] = Field(default=1, exclude_if=_is_one)


class AttemptRecord(Record):
    """One entry of the attempts ledger.

    Attributes:
        binding: What it is bound to: lane, plan and worst case.
        phase: ``claimed`` means that it ran, or may have: without a settlement nobody knows how it ended.
        provenance: What fills the lane.
        reserved_utc: When it was reserved.
        claimed_utc: When it was claimed, null before.
        ended_utc: When it was settled or cancelled, null before.
        actual: What it cost, null before it is settled.
        run: What is known of its agent's run; null where no agent ran, or its driver died with it.
    """

    binding: AttemptBinding
    phase: AttemptPhase
    provenance: Provenance
    reserved_utc: UtcTime
    claimed_utc: UtcTime | None
    ended_utc: UtcTime | None
    actual: Cost | None
    run: AgentRun | None = Field(default=None, exclude_if=is_missing)
