"""How waves are shared out, started and added up."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundkit.models.wave_plan import ModelPool
from roundkit.models.wave_records import Target
from roundkit.rules.wave_fleet import fleet_use
from roundkit.rules.wave_ramp import Ramp, pause_s
from roundkit.rules.wave_shards import deal, pool_order

SHARES = st.lists(st.integers(1, 200), min_size=1, max_size=6)


def pools(*shares: int) -> list[ModelPool]:
    return [
        ModelPool(id=f"p{number}", model=f"m{number}", share=share) for number, share in enumerate(shares)
    ]


def targets(count: int, *, groups: int = 1) -> list[Target]:
    return [
        Target(group=f"g{n % groups}", name=f"f{n // groups}", size=1, input="in", output=f"out{n}")
        for n in range(count)
    ]


@given(SHARES, st.integers(1, 300))
def test_w05_any_prefix_is_within_one_of_the_proportions(shares: list[int], count: int) -> None:
    order = [pool.id for pool in pool_order(pools(*shares), count)]
    had = Counter[str]()
    for position, pool in enumerate(order, 1):
        had[pool] += 1
        for number, share in enumerate(shares):
            assert abs(had[f"p{number}"] - position * share / sum(shares)) < 1


def test_w05_fewer_targets_than_workers_leave_no_pool_idle() -> None:
    slices = deal(targets(73), workers=128, pools=pools(86, 42), attempts=1)
    assert len(slices) == 73
    per_pool = Counter(slice_.pool for slice_ in slices)
    assert per_pool == {"p0": 49, "p1": 24}
    assert {slice_.model for slice_ in slices} == {"m0", "m1"}
    assert all(len(slice_.targets) == 1 for slice_ in slices)


@given(st.integers(1, 120), st.integers(1, 70), st.integers(1, 4), st.integers(1, 3))
def test_w05_every_target_is_dealt_once_an_attempt(
    count: int, workers: int, attempts: int, groups: int
) -> None:
    wave = targets(count, groups=groups)
    slices = deal(wave, workers=workers, pools=pools(2, 1), attempts=attempts)
    assert [slice_.index for slice_ in slices] == list(range(len(slices)))
    assert len(slices) <= max(workers, attempts)
    for attempt in range(1, attempts + 1):
        dealt = [
            (key.group, key.name) for slice_ in slices if slice_.attempt == attempt for key in slice_.targets
        ]
        assert Counter(dealt) == Counter(target.key for target in wave)
        sizes = [len(slice_.targets) for slice_ in slices if slice_.attempt == attempt]
        assert min(sizes) >= 1


def test_w05_targets_of_one_name_lie_in_different_slices() -> None:
    slices = deal(targets(8, groups=2), workers=2, pools=pools(1), attempts=1)
    for slice_ in slices:
        names = [key.name for key in slice_.targets]
        assert len(set(names)) == len(names) == 4


@pytest.mark.parametrize("shards", [9, 220, 800])
@pytest.mark.parametrize("late_s", [0.0, 30.0])
def test_w07_starts_stay_under_the_rate_by_a_virtual_clock(shards: int, late_s: float) -> None:
    window_s, most_s = 240.0, 0.5
    pause = pause_s(shards, window_s=window_s, most_s=most_s)
    rate = max(1 / most_s, shards / window_s)
    ramp, now_s, starts = Ramp(pause), 1000.0, list[float]()
    while len(starts) < shards:
        if not ramp.wait_s(now_s):
            starts.append(now_s)
            # The drafter was busy with something else halfway through: nothing is made up for.
            now_s += late_s if len(starts) == shards // 2 else 0.0
            ramp.started(now_s)
        now_s += max(ramp.wait_s(now_s), 0.001)
    for first, start in enumerate(starts):
        in_a_second = sum(start <= other < start + 1.0 for other in starts[first:])
        assert in_a_second <= rate + 1
    assert starts[-1] - starts[0] - late_s <= window_s
    assert starts[-1] - starts[0] >= (shards - 1) * pause - 1e-6


def test_w07_one_shard_starts_at_once() -> None:
    assert pause_s(1, window_s=240.0, most_s=0.5) == 0.0
    assert Ramp(0.5).wait_s(123.0) == 0.0


def test_fleet_use_adds_up_what_ran() -> None:
    use = fleet_use([(10.0, 20.0), (12.0, 15.0), (25.0, 30.0)])
    assert (use.wall_s, use.idle_s, use.busy_s, use.most) == (20.0, 5.0, 18.0, 2)
    assert use.idle_share == 0.25
    assert use.mean_running == 0.9
    assert fleet_use([(1.0, 2.0), (2.0, 3.0)]).most == 1
    assert fleet_use([]).idle_share is None
