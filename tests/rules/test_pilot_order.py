"""P01: the order of a paired pilot, for every shape."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundkit.rules.pilot_order import schedule, schedule_digest

SHAPES = st.tuples(st.integers(1, 6), st.integers(2, 5), st.integers(1, 6), st.integers(0, 2**53 - 1))


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def even(counts: Counter[object], kinds: int) -> bool:
    """Say whether the largest count is at most one above the smallest, names that are not there included."""
    found = [*counts.values(), *([0] * (kinds - len(counts)))]
    return max(found) - min(found) <= 1


@given(SHAPES)
def test_p01_every_tuple_is_there_once_and_the_order_is_balanced(shape: tuple[int, int, int, int]) -> None:
    task_count, variant_count, repetitions, seed = shape
    tasks, variants = names("t", task_count), names("v", variant_count)
    slots = schedule(tasks, variants, repetitions, seed)
    wanted = {f"{t}.{v}.{r}" for t, v, r in product(tasks, variants, range(1, repetitions + 1))}
    assert Counter(slot.tuple_id for slot in slots) == Counter(wanted)
    assert [slot.order for slot in slots] == list(range(1, len(slots) + 1))

    groups = [slots[at : at + variant_count] for at in range(0, len(slots), variant_count)]
    assert all(len({(slot.task, slot.repetition) for slot in group}) == 1 for group in groups)
    for place in range(variant_count):
        assert even(Counter(group[place].variant for group in groups), variant_count)
    for task in tasks:
        positions = Counter(at % task_count for at, group in enumerate(groups) if group[0].task == task)
        assert even(Counter(positions), task_count)
    repetitions_in_order = [group[0].repetition for group in groups]
    assert repetitions_in_order == sorted(repetitions_in_order)


@given(SHAPES)
def test_p01_the_same_seed_gives_the_same_digest(shape: tuple[int, int, int, int]) -> None:
    task_count, variant_count, repetitions, seed = shape
    tasks, variants = names("t", task_count), names("v", variant_count)
    one, other = (schedule(tasks, variants, repetitions, seed) for _ in range(2))
    assert schedule_digest(one) == schedule_digest(other)


@pytest.mark.parametrize(("tasks", "variants", "repetitions"), [(3, 2, 3), (2, 2, 1), (4, 3, 2)])
def test_p01_every_seed_decides_the_start_and_nothing_else(
    tasks: int, variants: int, repetitions: int
) -> None:
    found = {
        schedule_digest(schedule(names("t", tasks), names("v", variants), repetitions, seed))
        for seed in range(3 * tasks * variants)
    }
    assert len(found) == tasks * variants


def test_p01_nine_pairs_begin_five_times_with_one_variant_and_four_times_with_the_other() -> None:
    slots = schedule(names("t", 3), ["a", "b"], 3, 1)
    assert sorted(Counter(slot.variant for slot in slots[::2]).values()) == [4, 5]
    assert [slot.variant for slot in slots[::2]] == ["a", "b"] * 4 + ["a"]
