"""What the draft agents of a wave asked of their providers, and how many workers follow from that."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from roundkit.models.base import Count, Record

Tag = Annotated[str, Field(pattern=r"^[0-9]{4,}$")]
"""A wave's name: its number from 0001, in the order of the draws."""


class RequestEvent(Record):
    """One line of ``events.jsonl``: one request of a draft agent, or what it was answered.

    Attributes:
        at_s: Seconds since the epoch.
        event: ``post``: asked; ``429``: refused; ``answer``: answered.
        shard: Number of the shard.
        model: The model that was asked; null without one.
        source: Of a 429, who refused: ``platform`` is our own account, ``provider`` the pool behind it.
        tokens: Output tokens of an answer.
        micro_usd: What an answer cost, as its provider says.
        truncated: Whether the answer was cut off at its limit.
    """

    at_s: float
    event: Literal["post", "429", "answer"]
    tag: Tag
    shard: Count
    model: str | None
    source: Literal["platform", "provider"] | None = None
    tokens: Count | None = None
    micro_usd: Count | None = None
    truncated: bool = False


class WaveTraffic(Record):
    """One wave's requests, from its events alone; null is unknown. ``traffic.json`` once it is handed on.

    Attributes:
        requests: Requests that were asked.
        per_minute: Requests a minute over the time from its first to its last; null where that is less than a
            minute.
        platform_429: Refusals of our own account.
        provider_429: Refusals of the pool behind it.
        longest_429_minutes: Longest run of consecutive minutes with a provider's 429.
        truncated: Answers that were cut off at their limit.
        by_model: Requests and 429s of each model.
        bad_lines: Lines of the draft agents' files that are no event of theirs.
        memory_available_bytes: When it was handed on.
        swap_used_bytes: Swap in use when it was handed on; null without a reading.
    """

    requests: Count
    per_minute: float | None
    platform_429: Count
    provider_429: Count
    longest_429_minutes: Count
    truncated: Count
    by_model: dict[str, tuple[Count, Count]]
    bad_lines: Count
    memory_available_bytes: Count | None
    swap_used_bytes: Count | None


class WorkerDecision(Record):
    """How many workers the next wave has, and why.

    Attributes:
        reason: ``platform-429``, ``sustained-429`` and ``stall`` hold; ``burst`` and ``clean`` step up;
            ``held`` is clean or a burst with nothing to step up to.
        last_clean: The level that a hold goes back to: of the last wave that none of the three ended, and
            whose step had bought what it must.
        stalls: Consecutive steps that bought too little, up to now.
        next_workers: Workers of the next wave.
    """

    tag: Tag
    workers: int
    reason: Literal["platform-429", "sustained-429", "burst", "stall", "held", "clean"]
    last_clean: int
    stalls: Count
    next_workers: int


class WorkerStep(Record):
    """``decision.json``: a decision with the evidence that it was taken from, when the next wave began."""

    decision: WorkerDecision
    traffic: WaveTraffic
