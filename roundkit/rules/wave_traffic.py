"""What the request events of a wave say: how much was asked, and who refused when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from roundkit.core.canonical import LARGEST_INTEGER
from roundkit.models.wave_traffic import RequestEvent, WaveTraffic

_MINUTE_S = 60.0
NO_MODEL = "none"
"""Stands in ``by_model`` for the requests of agents without a model."""


@dataclass(frozen=True)
class Memory:
    """The machine's memory, in bytes; null where it cannot be read."""

    available_bytes: int | None
    swap_used_bytes: int | None


@dataclass(frozen=True)
class ShardUse:
    """What one shard's events add up to; null where it told of nothing."""

    turns: int | None
    truncated_turns: int | None
    tokens: int | None
    micro_usd: int | None


def traffic_of(events: Sequence[RequestEvent], *, bad_lines: int, memory: Memory) -> WaveTraffic:
    """Add up the events of one wave.

    A 429 of the platform is about our account; one of a provider is about the pool behind it, and counts as
    a ceiling only where it goes on from minute to minute.

    Args:
        events: All of the wave's, in any order.
        bad_lines: Lines that were none.
        memory: The machine's memory now.
    """
    posts = [event for event in events if event.event == "post"]
    refused = [event for event in events if event.event == "429"]
    provider = [event for event in refused if event.source == "provider"]
    asked = Counter(event.model or NO_MODEL for event in posts)
    denied = Counter(event.model or NO_MODEL for event in refused)
    return WaveTraffic(
        requests=len(posts),
        per_minute=_per_minute([event.at_s for event in posts]),
        platform_429=sum(event.source == "platform" for event in refused),
        provider_429=len(provider),
        longest_429_minutes=longest_run({int(event.at_s // _MINUTE_S) for event in provider}),
        truncated=sum(event.truncated for event in events),
        by_model={model: (asked[model], denied[model]) for model in sorted({*asked, *denied})},
        bad_lines=bad_lines,
        memory_available_bytes=memory.available_bytes,
        swap_used_bytes=memory.swap_used_bytes,
    )


def longest_run(minutes: Collection[int]) -> int:
    """Return how many consecutive minutes the longest run of them has."""
    longest = run = 0
    last: int | None = None
    for minute in sorted(minutes):
        run = run + 1 if last is not None and minute == last + 1 else 1
        longest = max(longest, run)
        last = minute
    return longest


def use_of(events: Iterable[RequestEvent]) -> ShardUse:
    """Add up what one shard's answers used.

    An amount that one of them does not tell is unknown, and so is a sum that no record can hold.
    """
    told = list(events)
    answers = [event for event in told if event.event == "answer"]
    if not told:
        return ShardUse(None, None, None, None)
    return ShardUse(
        turns=len(answers),
        truncated_turns=sum(answer.truncated for answer in answers),
        tokens=_sum([answer.tokens for answer in answers]),
        micro_usd=_sum([answer.micro_usd for answer in answers]),
    )


def _sum(amounts: Sequence[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    total = sum(known)
    return total if len(known) == len(amounts) and total <= LARGEST_INTEGER else None


def _per_minute(times_s: Sequence[float]) -> float | None:
    span_s = max(times_s) - min(times_s) if times_s else 0.0
    return _MINUTE_S * len(times_s) / span_s if span_s >= _MINUTE_S else None
