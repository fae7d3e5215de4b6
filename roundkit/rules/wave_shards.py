"""How a wave is shared out among workers, and the workers among the model pools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from roundkit.models.wave_plan import ModelPool
from roundkit.models.wave_records import Slice, Target, TargetKey


def deal(
    targets: Sequence[Target], *, workers: int, pools: Sequence[ModelPool], attempts: int
) -> tuple[Slice, ...]:
    """Share a wave out: one slice a worker, in the order of the starts, none of them empty.

    With several attempts each slice belongs to one of them, so that two drafts of a target never come from
    the same agent. Targets of one name lie in different slices wherever there are enough.

    Args:
        targets: The wave.
        workers: How many work at once; there are more slices only where there are more attempts.
        pools: The model pools.
        attempts: Independent drafts of each target.
    """
    hands = list(_hands(targets, max(workers, attempts), attempts))
    return tuple(
        Slice(
            index=index,
            pool=pool.id,
            model=pool.model,
            attempt=attempt,
            targets=tuple(TargetKey(group=target.group, name=target.name) for target in hand),
        )
        for index, ((attempt, hand), pool) in enumerate(
            zip(hands, pool_order(pools, len(hands)), strict=True)
        )
    )


def pool_order(pools: Sequence[ModelPool], count: int) -> list[ModelPool]:
    """Return the pool of each of the first ``count`` workers.

    The next one goes to the pool with the smallest ratio of what it would have to its share, among those
    that are behind their share: whatever the beginning that one looks at, no pool is a whole worker away
    from its proportion.
    """
    total = sum(pool.share for pool in pools)
    had = [0] * len(pools)
    order = []
    for position in range(1, count + 1):
        behind = [number for number, pool in enumerate(pools) if had[number] * total < position * pool.share]
        chosen = min(behind, key=lambda number: Fraction(had[number] + 1, pools[number].share))
        had[chosen] += 1
        order.append(pools[chosen])
    return order


def _hands(targets: Sequence[Target], slices: int, attempts: int) -> Iterator[tuple[int, list[Target]]]:
    for number in range(attempts):
        share = slices // attempts + (number < slices % attempts)
        for hand in _spread(targets, min(share, len(targets))):
            yield number + 1, hand


def _spread(targets: Sequence[Target], count: int) -> list[list[Target]]:
    """Deal targets like cards, but one whose name a hand holds already goes to another hand."""
    hands: list[list[Target]] = [[] for _ in range(count)]
    names: list[set[str]] = [set() for _ in range(count)]
    for target in targets:
        ranks = [(target.name in names[number], len(hands[number])) for number in range(count)]
        chosen = ranks.index(min(ranks))
        hands[chosen].append(target)
        names[chosen].add(target.name)
    return hands
