"""The order of a paired pilot's tuples: counterbalanced, reproducible, blind to what tasks hold.

In each repetition every task comes once, its variants next to each other. From one repetition to the next
the tasks move up by one position, and from one group of variants to the next another variant goes first. So
over a run each task takes each position, and each variant each place within its group, equally often, up to
one.
"""

from __future__ import annotations

from collections.abc import Sequence

from roundkit.core.canonical import digest_json
from roundkit.models.pilot_plan import Slot


def schedule(tasks: Sequence[str], variants: Sequence[str], repetitions: int, seed: int) -> tuple[Slot, ...]:
    """Return every tuple once, in the order in which they are to run.

    Args:
        tasks: Ids of the tasks, each once.
        variants: Ids of the variants, each once.
        repetitions: How often each task is tried with each variant.
        seed: Says which task is first at the start, and which variant.
    """
    first_task, first_variant = seed % len(tasks), seed // len(tasks) % len(variants)
    slots: list[Slot] = []
    group = 0
    for repetition in range(repetitions):
        for task in _rotated(tasks, first_task + repetition):
            for variant in _rotated(variants, first_variant + group):
                slots.append(
                    Slot(order=len(slots) + 1, task=task, variant=variant, repetition=repetition + 1)
                )
            group += 1
    return tuple(slots)


def schedule_digest(slots: Sequence[Slot]) -> str:
    """Return the digest of a schedule."""
    return digest_json([slot.to_json_value() for slot in slots])


def _rotated(names: Sequence[str], by: int) -> list[str]:
    at = by % len(names)
    return [*names[at:], *names[:at]]
