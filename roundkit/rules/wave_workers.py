"""How many workers the next wave has: from evidence only."""

from __future__ import annotations

from collections.abc import Sequence

from roundkit.models.wave_plan import WorkerRules
from roundkit.models.wave_traffic import WaveTraffic, WorkerDecision, WorkerStep


def decide(
    rules: WorkerRules, tag: str, workers: int, traffic: WaveTraffic, before: Sequence[WorkerStep]
) -> WorkerDecision:
    """Decide after a wave.

    Our account's own limit holds at once, a provider's where it lasts, and so do steps that bought no
    throughput; a burst is somebody else's. Every hold goes back to the last clean level.

    Args:
        rules: The plan's.
        tag: The wave.
        workers: How many it had.
        traffic: Its requests.
        before: The decisions before this one with their evidence, oldest first.
    """
    last = before[-1].decision if before else None
    last_clean = last.last_clean if last is not None else min(workers, rules.start)
    stalls = last.stalls if last is not None else 0
    gain_missed = _step_missed_its_gain(rules, workers, traffic, before)
    if gain_missed is not None:
        stalls = stalls + 1 if gain_missed else 0
    if traffic.platform_429:
        return _hold(tag, workers, "platform-429", last_clean, stalls)
    if traffic.longest_429_minutes >= rules.sustained_minutes:
        return _hold(tag, workers, "sustained-429", last_clean, stalls)
    if gain_missed and stalls >= rules.stalls:
        return _hold(tag, workers, "stall", last_clean, stalls)
    following = min(rules.most, workers + rules.step)
    return WorkerDecision(
        tag=tag,
        workers=workers,
        reason="held" if following == workers else "burst" if traffic.provider_429 else "clean",
        last_clean=last_clean if gain_missed else workers,
        stalls=stalls,
        next_workers=following,
    )


def next_workers(rules: WorkerRules, before: Sequence[WorkerStep]) -> int:
    """Return how many workers the next wave has."""
    return before[-1].decision.next_workers if before else rules.start


def _step_missed_its_gain(
    rules: WorkerRules, workers: int, traffic: WaveTraffic, before: Sequence[WorkerStep]
) -> bool | None:
    """Say whether a step up bought too little; None where this wave was no step, or nobody can tell."""
    if not before or workers <= before[-1].decision.workers:
        return None
    earlier, now = before[-1].traffic.per_minute, traffic.per_minute
    if not earlier or now is None:
        return None
    return now < earlier * (1.0 + rules.least_gain)


def _hold(tag: str, workers: int, reason: str, last_clean: int, stalls: int) -> WorkerDecision:
    return WorkerDecision.model_validate({
        "tag": tag,
        "workers": workers,
        "reason": reason,
        "last_clean": last_clean,
        "stalls": stalls,
        "next_workers": last_clean,
    })  # fmt: skip
