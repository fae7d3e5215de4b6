"""Time to an event where some never have it: the product-limit estimate (Kaplan and Meier, 1958)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """The share that has not had the event, from a time on.

    Attributes:
        time: When it changes, or when somebody is censored.
        share: What is left from here on.
        at_risk: How many were still observed right before.
        events: How many have the event at this time.
        censored: How many are censored at this time.
    """

    time: float
    share: float
    at_risk: int
    events: int
    censored: int


def product_limit(observed: Sequence[tuple[float, bool]]) -> tuple[Step, ...]:
    """Return the estimate's steps, earliest first.

    At each time t with d events among n still observed the share is multiplied by ``1 - d / n``; whoever is
    censored at t counts as observed at t.

    Args:
        observed: Time of each, and whether it is the event's (else of censoring).
    """
    share, at_risk = 1.0, len(observed)
    steps = []
    for time in sorted({time for time, _ in observed}):
        events = sum(at == time and happened for at, happened in observed)
        censored = sum(at == time and not happened for at, happened in observed)
        share *= 1.0 - events / at_risk
        steps.append(Step(time, share, at_risk, events, censored))
        at_risk -= events + censored
    return tuple(steps)
