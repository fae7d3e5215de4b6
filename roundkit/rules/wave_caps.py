"""What one shard's agent may use, and whether it told of more."""

from __future__ import annotations

from dataclasses import dataclass

from roundkit.models.wave_plan import LeverSet, WaveDraft


@dataclass(frozen=True)
class Caps:
    """What all targets of a shard may take together.

    Attributes:
        turns: Answers.
        micro_usd: Cost, in micro-USD.
    """

    turns: int
    micro_usd: int


def caps_of(plan: WaveDraft, lever: LeverSet, targets: int) -> Caps:
    """Return the caps of a shard with so many targets."""
    turns = plan.draft.turns if lever.turns is None else lever.turns
    micro_usd = plan.draft.micro_usd if lever.micro_usd is None else lever.micro_usd
    return Caps(turns * targets, micro_usd * targets)


def beyond(caps: Caps, *, turns: int, micro_usd: int) -> str | None:
    """Say by what a shard's agent has gone beyond its caps; null where it has not.

    Args:
        caps: Its caps.
        turns: Answers that it told of.
        micro_usd: What those told of their cost, which is no less than that.
    """
    if turns > caps.turns:
        return f"it told of {turns} turns, and has {caps.turns}"
    if micro_usd > caps.micro_usd:
        return f"it told of {micro_usd} micro-USD, and has {caps.micro_usd}"
    return None
