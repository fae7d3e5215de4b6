"""The checks of what a drafter said last: what it was at, why it ended, and the credit that was left."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.wave_material import CampaignMaterial
from roundkit.evidence import wave_layout as layout
from roundkit.models.wave_records import DrafterState, LedgerRow
from roundkit.rules.wave_draw import ENDINGS, NO_AGENTS

_WRITTEN_WITHIN = timedelta(minutes=1)
"""A state is written a moment after its time, and what else is done within that moment comes first."""
_NOT_STARTED = "not-started"


def check_drafter(material: CampaignMaterial) -> list[Check]:
    """Check what the drafter said against the plan, its waves, and the ledger's credit."""
    state = material.drafter
    agreed = "no drafter ever ran" if state is None else f"{state.state}: {state.reason}"
    return conclude("drafter", _problems(material), agreed)


def _problems(material: CampaignMaterial) -> Iterator[Disagreement]:
    state = material.drafter
    for number, row in enumerate(material.rows, 1):
        where = f"{layout.LEDGER}: line {number}"
        yield from (Disagreement(where, problem) for problem in _credit_problems(material, row))
        if state is not None and row.gated_utc > state.at_utc + _WRITTEN_WITHIN:
            stands, follows = (row.credit_usd, row.credit_reason), (state.credit_usd, state.credit_reason)
            if stands != follows:
                yield differs(where, "credit", stands, follows)
    if state is not None:
        problems = (*_credit_problems(material, state), *_state_problems(material, state))
        yield from (Disagreement(layout.DRAFTER, problem) for problem in problems)


def _credit_problems(material: CampaignMaterial, told: LedgerRow | DrafterState) -> Iterator[str]:
    if (told.credit_usd is None) != (told.credit_reason is not None):
        yield "credit and the reason why nobody knows it do not go together"
    if told.credit_usd is not None and material.plan.plan.credit is None:
        yield f"tells a credit of {told.credit_usd} USD, and the plan names no command that could"


def _state_problems(material: CampaignMaterial, state: DrafterState) -> Iterator[str]:
    tags = {each.tag for each in material.waves}
    if state.at_utc < material.plan.frozen_utc:
        yield f"is of {state.at_utc}, before the plan was frozen"
    if state.state == "drafting" and not set(state.reason.split(", ")) <= tags:
        yield f"drafts {state.reason}, and the waves are {', '.join(sorted(tags))}"
    if state.state == "waiting" and state.reason in ENDINGS:
        yield f"waits for {state.reason}, which is a reason to end"
    if state.state == "ended":
        yield from _ending_problems(material, state)
        last = max(_moments(material), default=state.at_utc)
        if state.at_utc < last - _WRITTEN_WITHIN:
            yield f"ended at {state.at_utc}, and went on until {last}"


def _ending_problems(material: CampaignMaterial, state: DrafterState) -> Iterator[str]:
    plan, waves = material.plan.plan, material.waves
    # What an export of a campaign that runs read before its drafter ended may lack an end.
    refused = [
        all(end is None or end.end_reason == _NOT_STARTED for _, end in each.shards.values())
        for each in waves
    ]
    might = {
        "waves": plan.waves is not None and len(waves) >= plan.waves,
        "deadline": plan.deadline_utc is not None and state.at_utc >= plan.deadline_utc,
        "credit": state.credit_usd is not None and state.credit_usd < plan.credit_floor_usd,
        "authorization": plan.authorization is not None,
        NO_AGENTS: any(refused),
    }
    if state.reason not in ENDINGS:
        yield f"ended for {state.reason}, which is no reason to end"
    elif not might.get(state.reason, True):
        yield f"ended for {state.reason}, which cannot be by the plan and its waves"


def _moments(material: CampaignMaterial) -> Iterator[datetime]:
    for each in material.waves:
        yield each.wave.drawn_utc
        if each.drafted is not None:
            yield each.drafted.handed_utc
        yield from (end.ended_utc for _, end in each.shards.values() if end is not None)
