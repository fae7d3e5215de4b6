"""The local pool: D device sets measure D experiments at once and never share a device."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import wait
from pathlib import Path

import pytest
from measure.worlds import World

from roundkit.host.lease import acquire_set
from roundkit.measure.broke import DeviceBusy
from roundkit.measure.pool import LocalPool
from roundkit.models.round_plan import DeviceSet
from roundkit.models.trial import Trial

Declare = Callable[..., DeviceSet]


def test_two_sets_measure_at_once_and_a_third_request_waits(
    world: World, lease_root: Path, fixture_devices: Declare
) -> None:
    sets = (fixture_devices("a"), fixture_devices("b"))
    pool = LocalPool(sets, lease_root=lease_root)
    both_run = threading.Barrier(2, timeout=30)

    def meet(done: int, total: int, trial: Trial) -> None:
        if done == 1:
            both_run.wait()

    candidate = world.candidate({})
    futures = [
        pool.submit(world.request(candidate, sets, pairs=2, name=f"e.{n}"), progress=meet) for n in range(2)
    ]
    with pytest.raises(DeviceBusy):
        pool.submit(world.request(candidate, sets, pairs=2, name="e.2"))
    wait(futures)
    records = [future.result() for future in futures]
    assert [record.outcome for record in records] == ["complete", "complete"]
    assert {record.lease.device_set for record in records if record.lease} == {"a", "b"}
    assert {one.id for one in pool.free_sets()} == {"a", "b"}
    third = pool.submit(world.request(candidate, sets[:1], pairs=2, name="e.2"))
    assert third.result().outcome == "complete"
    pool.close()
    pool.close()


def test_r21_pool_leaves_a_device_alone_that_somebody_else_holds(
    world: World, lease_root: Path, fixture_devices: Declare
) -> None:
    device = fixture_devices("a")
    pool = LocalPool((device,), lease_root=lease_root)
    with acquire_set(["fixture:a"], root=lease_root, purpose="another round") as held:
        assert held is not None
        assert pool.free_sets() == ()
        future = pool.submit(world.request(world.candidate({}), (device,)))
        with pytest.raises(DeviceBusy):
            future.result()
    assert [one.id for one in pool.free_sets()] == ["a"]
    pool.close()


def test_closing_ends_what_runs_as_interrupted(
    world: World, lease_root: Path, fixture_devices: Declare
) -> None:
    device = fixture_devices("a")
    pool = LocalPool((device,), lease_root=lease_root)
    first_trial = threading.Event()
    request = world.request(world.candidate({}), (device,))
    future = pool.submit(request, progress=lambda done, total, trial: first_trial.set())
    assert first_trial.wait(timeout=30)
    pool.close()
    record = future.result()
    assert (record.outcome, record.reason) == ("infrastructure", "interrupted")
    assert 1 <= len(record.trials) < len(request.schedule)
    with pytest.raises(DeviceBusy):
        pool.submit(request)
