"""In which order a policy pilot runs, and which lanes the next round of a run has."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from roundkit.core.canonical import digest_json
from roundkit.models.policy_plan import ARMS, PolicySlot


def policy_schedule(seed: int, repetitions: int) -> tuple[PolicySlot, ...]:
    """Return every run once: pairs stay together, and the arm that goes first alternates.

    Which arm begins the first pair follows from the seed.

    Args:
        seed: The pilot's seed.
        repetitions: Runs of each arm.
    """
    begins = int(digest_json(["policy-order", seed])[-1], 16) % 2
    slots: list[PolicySlot] = []
    for repetition in range(1, repetitions + 1):
        first = (begins + repetition - 1) % 2
        for arm in (ARMS[first], ARMS[1 - first]):
            slots.append(PolicySlot(order=len(slots) + 1, arm=arm, repetition=repetition))
    return tuple(slots)


def schedule_digest(schedule: Sequence[PolicySlot]) -> str:
    """Return the digest of a schedule."""
    return digest_json([slot.to_json_value() for slot in schedule])


def next_lanes(
    order: Sequence[str], planned: Collection[str], last: str | None, count: int
) -> tuple[str, ...]:
    """Return the lanes of the next round: those still planned, in the frozen order, going round.

    Args:
        order: Every lane in the frozen order.
        planned: Lanes whose entry is planned.
        last: The lane that was tried last; None at the start.
        count: How many lanes a round has at most.
    """
    start = order.index(last) + 1 if last in order else 0
    waiting = [lane for lane in [*order[start:], *order[:start]] if lane in planned]
    return tuple(waiting[:count])
