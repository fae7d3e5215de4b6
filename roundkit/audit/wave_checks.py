"""The checks of a wave campaign's drafting: shares, requests, and how many workers followed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import get_args

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.wave_material import CampaignMaterial, WaveMaterial
from roundkit.audit.wave_time_checks import tail_utc
from roundkit.core.clock import is_expired
from roundkit.evidence import wave_layout as layout
from roundkit.host.confine import EndReason
from roundkit.models.wave_records import Shard, ShardEnd
from roundkit.models.wave_traffic import RequestEvent, WaveTraffic
from roundkit.rules.wave_caps import beyond, caps_of
from roundkit.rules.wave_draw import wave_micro_usd
from roundkit.rules.wave_shards import deal
from roundkit.rules.wave_traffic import Memory, traffic_of, use_of
from roundkit.rules.wave_workers import decide, next_workers

_BY_ITSELF = "exited"
_LOST, _NOT_STARTED, _BUDGET = "lost", "not-started", "budget"
_REASONS = frozenset({*get_args(EndReason), _LOST, _NOT_STARTED, _BUDGET})
_TAKEN_WITHIN = timedelta(seconds=10)
"""The drafter has taken the last events of a shard so soon after its end; until then, its agent's are its."""
_COUNTS = ("requests", "platform_429", "provider_429", "longest_429_minutes", "truncated")


def check_campaign(material: CampaignMaterial) -> list[Check]:
    """Check that all records are of one plan, and that what could spend money was allowed to."""
    digest = material.plan.digest()
    return [
        *conclude("plan", _plan_problems(material), f"canonical bytes, SHA-256 {digest}"),
        *conclude("authority", _authority_problems(material), "nothing was drawn beyond what was authorized"),
    ]


def check_shards(material: CampaignMaterial) -> list[Check]:
    """Check how waves were shared out, and what each shard used by its agent's own events."""
    count = sum(len(each.shards) for each in material.waves)
    return conclude("shards", _shard_problems(material), f"{count} shards, dealt and counted by the rules")


def check_workers(material: CampaignMaterial) -> list[Check]:
    """Check every decision on workers, and that each wave had what was decided."""
    steps = [each.step for each in material.waves if each.step is not None]
    return conclude("workers", _worker_problems(material), f"{len(steps)} decisions, each from its requests")


def check_requests(material: CampaignMaterial) -> list[Check]:
    """Check every wave's figures of requests against the events."""
    found = _request_problems(material)
    return conclude("requests", found, f"{len(material.events)} events, each of a shard that was started")


def _plan_problems(material: CampaignMaterial) -> Iterator[Disagreement]:
    digest, plan = material.plan.digest(), material.plan.plan
    if material.evidence.index.campaign_id != plan.campaign_id:
        yield differs(layout.INDEX, "campaign_id", material.evidence.index.campaign_id, plan.campaign_id)
    for each in material.waves:
        if each.wave.plan_sha256 != digest:
            yield differs(f"{each.where}/{layout.WAVE}", "plan_sha256", each.wave.plan_sha256, digest)
    for number, row in enumerate(material.rows, 1):
        where = f"{layout.LEDGER}: line {number}"
        if row.plan_sha256 != digest:
            yield differs(where, "plan_sha256", row.plan_sha256, digest)
        if row.provenance != plan.draft.agent.provenance:
            yield differs(where, "provenance", row.provenance, plan.draft.agent.provenance)


def _authority_problems(material: CampaignMaterial) -> Iterator[Disagreement]:
    plan = material.plan.plan
    allowed, spent = plan.authorization, 0
    if allowed is None:
        if plan.draft.agent.provenance == "model":
            yield Disagreement(layout.PLAN, "a model was asked without an authorization")
        return
    for each in material.waves:
        spent += wave_micro_usd(plan, each.wave)
        if is_expired(allowed.until_utc, each.wave.drawn_utc):
            yield Disagreement(each.where, "was drawn after the authorization had ended")
        if spent > allowed.micro_usd:
            yield differs(
                each.where, "worst cost so far, in micro-USD", spent, f"at most {allowed.micro_usd}"
            )


def _shard_problems(material: CampaignMaterial) -> Iterator[Disagreement]:
    plan = material.plan.plan
    for each in material.waves:
        workers = _workers(material, each)
        dealt = {
            part.index: part
            for part in deal(
                each.wave.targets, workers=workers, pools=plan.pools, attempts=plan.draft.attempts
            )
        }
        for number, (shard, end) in each.shards.items():
            where = layout.shard_folder(each.tag, number)
            part = dealt.get(number)
            share = None if part is None else (part.pool, part.model, part.attempt, part.targets)
            if (shard.tag, shard.index) != (each.tag, number):
                yield Disagreement(where, "is of another wave or number")
            elif share != (shard.pool, shard.model, shard.attempt, shard.targets):
                yield Disagreement(where, "is not the share that follows from the wave and its workers")
            if end is not None:
                yield from _end_problems(material, where, shard, end)
        if each.drafted is not None:
            yield from _hand_problems(each, len(dealt))


def _workers(material: CampaignMaterial, each: WaveMaterial) -> int:
    return next_workers(material.plan.plan.workers, material.steps_before(each.tag))


def _end_problems(
    material: CampaignMaterial, where: str, shard: Shard, end: ShardEnd
) -> Iterator[Disagreement]:
    if (end.tag, end.index) != (shard.tag, shard.index):
        yield Disagreement(f"{where}/{layout.END}", "is of another wave or number")
        return
    if end.ended_utc < shard.started_utc:
        yield Disagreement(f"{where}/{layout.END}", "it ended before it started")
    if (end.end_reason == _BY_ITSELF) != (end.exit_code is not None):
        yield Disagreement(f"{where}/{layout.END}", "its exit code and the reason of its end disagree")
    events = material.events_of.get((shard.tag, shard.index), ())
    if problem := _reason_problem(material, shard, end, events):
        yield Disagreement(f"{where}/{layout.END}", problem)
    use = use_of(events)
    for name in ("turns", "truncated_turns", "tokens", "micro_usd"):
        stands, follows = getattr(end, name), getattr(use, name)
        if stands != follows:
            yield differs(f"{where}/{layout.END}", name, stands, follows)


def _reason_problem(
    material: CampaignMaterial, shard: Shard, end: ShardEnd, events: Sequence[RequestEvent]
) -> str | None:
    """Say why an agent cannot have ended for what its record says; None where it can."""
    if end.end_reason not in _REASONS:
        return f"it ended for {end.end_reason}, which is no reason to end"
    if end.end_reason == _NOT_STARTED and events:
        return f"its agent was never started, and told of {len(events)} requests"
    if end.end_reason == _BUDGET:
        plan = material.plan.plan
        lever = next(each.wave.lever_set for each in material.waves if each.tag == shard.tag)
        caps = caps_of(plan, next(one for one in plan.lever_sets if one.id == lever), len(shard.targets))
        turns = sum(event.event == "answer" for event in events)
        if beyond(caps, turns=turns, micro_usd=sum(event.micro_usd or 0 for event in events)) is None:
            return (
                f"it ended at its caps, {caps.turns} turns and {caps.micro_usd} micro-USD, and told of less"
            )
    return None


def _hand_problems(each: WaveMaterial, dealt: int) -> Iterator[Disagreement]:
    drafted, where = each.drafted, f"{each.where}/{layout.DRAFTED}"
    assert drafted is not None
    starts = [shard.started_utc for shard, _ in each.shards.values()]
    known = {
        "tag": each.tag,
        "shards": dealt,
        "began_utc": min(starts, default=drafted.began_utc),
    }
    for name, follows in known.items():
        if getattr(drafted, name) != follows:
            yield differs(where, name, getattr(drafted, name), follows)
    if len(each.shards) != dealt:
        yield differs(each.where, "shards that were started", len(each.shards), dealt)
    late = sum(end is None or end.ended_utc > drafted.handed_utc for _, end in each.shards.values())
    # Of an agent that was lost, the last sign is no end; one that has just ended stands among those that run.
    maybe = sum(
        end is None or end.end_reason == _LOST or end.ended_utc > drafted.handed_utc - _TAKEN_WITHIN
        for _, end in each.shards.values()
    )
    if drafted.running > maybe or (not drafted.running and late):
        yield differs(where, "running", drafted.running, late)
    if not each.wave.drawn_utc <= drafted.began_utc <= drafted.handed_utc:
        yield Disagreement(where, "the wave was not drawn, begun and handed on in this order")


def _worker_problems(material: CampaignMaterial) -> Iterator[Disagreement]:
    rules = material.plan.plan.workers
    for each in material.waves:
        workers = _workers(material, each)
        if each.drafted is not None and each.drafted.workers != workers:
            yield differs(f"{each.where}/{layout.DRAFTED}", "workers", each.drafted.workers, workers)
        if each.step is None:
            continue
        computed = decide(rules, each.tag, workers, each.step.traffic, material.steps_before(each.tag))
        where = f"{each.where}/{layout.DECISION}"
        for name in type(computed).model_fields:
            stands, follows = getattr(each.step.decision, name), getattr(computed, name)
            if stands != follows:
                yield differs(where, name, stands, follows)
        yield from _traffic_problems(material, each, each.step.traffic, where, whole=False)
        yield from _least_problems(material, each, each.step.traffic, where)


def _request_problems(material: CampaignMaterial) -> Iterator[Disagreement]:
    shards = {(each.tag, number): shard for each in material.waves for number, shard in each.shards.items()}
    for number, event in enumerate(material.events, 1):
        shard, end = shards.get((event.tag, event.shard), (None, None))
        if problem := _event_problem(shard, end, event):
            yield Disagreement(f"{layout.EVENTS}: line {number}", problem)
    for each in material.waves:
        where = f"{each.where}/{layout.TRAFFIC}"
        if each.traffic is not None:
            yield from _traffic_problems(material, each, each.traffic, where, whole=each.is_whole)
        elif each.drafted is not None:
            yield Disagreement(where, "is missing, and the wave was handed on")


def _event_problem(shard: Shard | None, end: ShardEnd | None, event: RequestEvent) -> str | None:
    if shard is None:
        return f"is of shard {event.shard} of wave {event.tag}, which was never started"
    if event.model != shard.model:
        return f"is of model {event.model}, and its shard has {shard.model}"
    if event.at_s < shard.started_utc.timestamp():
        return "is from before its shard was started"
    # Nobody saw when an agent that was lost did its last.
    ended = None if end is None or end.end_reason == _LOST else end.ended_utc + _TAKEN_WITHIN
    if ended is not None and event.at_s > ended.timestamp():
        return "is from after its shard had ended"
    return None


def _traffic_problems(
    material: CampaignMaterial, each: WaveMaterial, stands: WaveTraffic, where: str, *, whole: bool
) -> Iterator[Disagreement]:
    """Hold figures against all events of a wave: equal where nothing came later, else no more than those."""
    memory = Memory(stands.memory_available_bytes, stands.swap_used_bytes)
    follows = traffic_of(material.wave_events(each.tag), bad_lines=stands.bad_lines, memory=memory)
    # Figures that count as much as there is in all were taken from all of it.
    if whole or all(getattr(stands, name) == getattr(follows, name) for name in (*_COUNTS, "by_model")):
        for name in type(follows).model_fields:
            if getattr(stands, name) != getattr(follows, name):
                yield differs(where, name, getattr(stands, name), getattr(follows, name))
        return
    if sum(asked for asked, _ in stands.by_model.values()) != stands.requests:
        yield Disagreement(where, "its requests by model are not as many as its requests")
    for name in _COUNTS:
        if getattr(stands, name) > getattr(follows, name):
            yield differs(where, name, getattr(stands, name), f"at most {getattr(follows, name)}")
    for model, counts in stands.by_model.items():
        if any(one > most for one, most in zip(counts, follows.by_model.get(model, (0, 0)), strict=True)):
            yield differs(where, f"by_model of {model}", counts, f"at most {follows.by_model.get(model)}")


def _least_problems(
    material: CampaignMaterial, each: WaveMaterial, stands: WaveTraffic, where: str
) -> Iterator[Disagreement]:
    """A decision knows of all requests of shards that had ended before it, and of no more than came later."""
    if each.traffic is not None and stands.bad_lines > each.traffic.bad_lines:
        yield differs(where, "bad_lines", stands.bad_lines, f"at most {each.traffic.bad_lines}")
    tail = tail_utc(material, each)
    ended = {
        number
        for number, (_, end) in each.shards.items()
        if end is not None and end.end_reason != _LOST and tail and end.ended_utc <= tail - _TAKEN_WITHIN
    }
    known = [event for event in material.wave_events(each.tag) if event.shard in ended]
    least = traffic_of(known, bad_lines=0, memory=Memory(None, None))
    for name in _COUNTS:
        if getattr(stands, name) < getattr(least, name):
            yield differs(where, name, getattr(stands, name), f"at least {getattr(least, name)}")
    for model, counts in least.by_model.items():
        if any(one < some for one, some in zip(stands.by_model.get(model, (0, 0)), counts, strict=True)):
            yield differs(where, f"by_model of {model}", stands.by_model.get(model), f"at least {counts}")
