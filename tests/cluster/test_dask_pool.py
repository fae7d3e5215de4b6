"""The Dask pool: one worker, real experiments, and what arrives wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster.conftest import sets_of
from measure.worlds import World
from support.cluster import Cluster, fixture_sets
from support.killing import wait_for

from roundkit.core.errors import Refused
from roundkit.host.lease import acquire_set, holders
from roundkit.measure.broke import DeviceBusy
from roundkit.measure.cluster.pool import DaskPool
from roundkit.measure.cluster.security import check_address
from roundkit.measure.cluster.shelf import Shelf
from roundkit.models.cluster import RemoteRequest
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.measurement import MeasurementRequest
from roundkit.models.round_plan import DeviceSet, FrozenRuntime
from roundkit.models.trial import Trial

OpenPool = Callable[..., DaskPool]


@pytest.fixture(scope="module")
def one_worker(running: Cluster) -> Cluster:
    running.start_worker("w1", fixture_sets(["a"]))
    return running


def measured(pool: DaskPool, request: MeasurementRequest, **options: object) -> ExperimentRecord:
    wait_for(pool.free_sets, "a free device set")
    return pool.submit(request, **options).result(timeout=120)  # type: ignore[arg-type]


def test_a_worker_measures_both_sides_and_keeps_the_incumbent(
    one_worker: Cluster, world: World, open_pool: OpenPool
) -> None:
    pool = open_pool(one_worker, "a")
    seen: list[tuple[int, int]] = []

    def on_trial(done: int, planned: int, trial: Trial) -> None:
        assert trial.value is not None
        seen.append((done, planned))

    changed = world.candidate({"prog/extra.py": "x = 1\n", "prog/__init__.py": "y = 2\n"})
    (changed / "empty").mkdir()
    request = world.request(changed, sets_of("a"), pairs=2, name="first.1")
    record = measured(pool, request, progress=on_trial)
    assert (record.outcome, record.reason) == ("complete", None)
    assert record.lease is not None
    assert record.lease.device_set == "a"
    assert record.candidate.files_sha256_after == request.candidate.built_sha256
    assert [trial.planned for trial in record.trials] == list(request.schedule)
    wait_for(lambda: len(seen) == len(request.schedule), "word of every trial")
    kept = sorted((one_worker.root / "w1/cache/trees").iterdir())
    again = measured(pool, world.request(changed, sets_of("a"), pairs=2, name="first.2"))
    assert again.outcome == "complete"
    # Nothing but the candidate travelled, and it was not kept.
    assert sorted((one_worker.root / "w1/cache/trees").iterdir()) == kept
    assert list((one_worker.root / "w1/runs").iterdir()) == []
    wait_for(
        lambda: not list((one_worker.root / "w1/spool").iterdir()),
        "records that have arrived to be forgotten",
    )
    assert pool.late_records() == ()


def test_k03_a_device_that_a_local_round_holds_is_waited_for(
    one_worker: Cluster, world: World, open_pool: OpenPool
) -> None:
    pool = open_pool(one_worker, "a")
    request = world.request(world.candidate({}), sets_of("a"), pairs=2, name="waits.1")
    with acquire_set(["fixture:a"], root=one_worker.leases, purpose="a local round") as held:
        assert held is not None
        wait_for(pool.free_sets, "the device set")
        future = pool.submit(request)
        with pytest.raises(DeviceBusy):
            pool.submit(request.model_copy(update={"experiment_id": "waits.2"}))
        wait_for(lambda: list(one_worker.leases.glob("*.turn")), "its place in line")
        # Who did not wait does not get in before it.
        held.release()
        assert acquire_set(["fixture:a"], root=one_worker.leases, purpose="another") is None
    assert future.result(timeout=60).outcome == "complete"
    wait_for(lambda: not holders(one_worker.leases), "the end of the lease")


def test_k05_a_bundle_that_was_tampered_with_on_the_way_is_refused(
    one_worker: Cluster, world: World, open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = open_pool(one_worker, "a")
    pack = Shelf.pack

    def tampered(shelf: Shelf, *words: object) -> tuple[RemoteRequest, bytes]:
        remote, bundle = pack(shelf, *words)  # type: ignore[arg-type]
        return remote, bundle.replace(b"x = 1", b"x = 2")

    monkeypatch.setattr(Shelf, "pack", tampered)
    candidate = world.candidate({"prog/extra.py": "x = 1\n"})
    record = measured(pool, world.request(candidate, sets_of("a"), pairs=2, name="tampered.1"))
    assert (record.outcome, record.reason, record.trials) == ("infrastructure", "bundle-digest", ())


def test_k05_a_wrong_incumbent_in_a_workers_cache_is_refused_and_thrown_away(
    one_worker: Cluster, world: World, open_pool: OpenPool
) -> None:
    pool = open_pool(one_worker, "a")
    candidate = world.candidate({})
    assert (
        measured(pool, world.request(candidate, sets_of("a"), pairs=2, name="cache.1")).outcome == "complete"
    )
    trees = one_worker.root / "w1/cache/trees"
    for core in trees.glob("*/prog/core.py"):
        times = core.stat().st_mtime_ns
        core.write_text(core.read_text().replace("sum", "max"))
        os.utime(core, ns=(times, times))
    record = measured(pool, world.request(candidate, sets_of("a"), pairs=2, name="cache.2"))
    assert (record.outcome, record.reason, record.trials) == ("infrastructure", "incumbent-digest", ())
    seen = [
        measured(pool, world.request(candidate, sets_of("a"), pairs=2, name=f"cache.{n}")) for n in (3, 4)
    ]
    assert "complete" in {record.outcome for record in seen}


def test_a_worker_without_the_plans_interpreter_measures_nothing(
    one_worker: Cluster, world: World, open_pool: OpenPool
) -> None:
    pool = open_pool(one_worker, "a")
    request = world.request(world.candidate({}), sets_of("a"), pairs=2, name="python.1")
    runtime = FrozenRuntime(python="/no/python", readable=())
    elsewhere = request.run_spec.model_copy(update={"runtime": runtime})
    record = measured(pool, request.model_copy(update={"run_spec": elsewhere}))
    assert (record.outcome, record.reason) == ("infrastructure", "runtime-missing")
    assert "/no/python" in (record.detail or "")


def test_a_set_that_a_worker_has_otherwise_than_the_plan_is_not_used(
    one_worker: Cluster, open_pool: OpenPool
) -> None:
    pool = open_pool(one_worker, "z")
    wait_for(lambda: "no worker offers" in (pool.trouble() or ""), "word of what is missing")
    assert pool.free_sets() == ()
    other = DeviceSet(id="a", platform="fixture", devices=("b",))
    pool._sets = (other,)
    assert pool.free_sets() == ()


def test_closing_ends_what_runs_as_interrupted(
    one_worker: Cluster, world: World, open_pool: OpenPool
) -> None:
    pool = open_pool(one_worker, "a")
    wait_for(pool.free_sets, "a free device set")
    begun: list[int] = []
    future = pool.submit(
        world.request(world.candidate({}), sets_of("a"), pairs=40, name="closed.1"),
        progress=lambda done, *_: begun.append(done),
    )
    wait_for(lambda: begun, "a first trial")
    pool.close()
    record = future.result(timeout=0)
    assert (record.outcome, record.reason) == ("infrastructure", "interrupted")
    assert 0 < len(record.trials) < 82


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("tcp://10.0.0.1:8786", "tls-needed"),
        ("tls://10.0.0.1:8786", "tls-needed"),
        ("tcp://cluster.example:8786", "tls-needed"),
        ("10.0.0.1:8786", "scheduler-address"),
        ("ws://127.0.0.1:1", "scheduler-address"),
    ],
)
def test_without_tls_only_loopback_is_spoken_to(address: str, code: str) -> None:
    with pytest.raises(Refused, match=code):
        check_address(address, None, place="--scheduler")
    check_address("tcp://127.0.0.1:8786", None, place="--scheduler")
    check_address("tcp://localhost:8786", None, place="--scheduler")


def test_certificates_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"tls-files.*authority\.pem, cluster\.pem, cluster\.key"):
        check_address("tls://10.0.0.1:8786", tmp_path, place="--scheduler")
