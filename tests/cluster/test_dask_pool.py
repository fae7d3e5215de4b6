"""The Dask pool: one worker, real experiments, and what arrives wrong."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster.conftest import sets_of, slow_program
from distributed.client import ClosedClientError
from measure.worlds import World
from support.cluster import Cluster, fixture_sets
from support.killing import wait_for

from roundkit.core.errors import Refused
from roundkit.host.lease import acquire_set, holders
from roundkit.measure.broke import DeviceBusy
from roundkit.measure.cluster import asking, flights
from roundkit.measure.cluster.link import Link
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
    one_worker: Cluster, world: World, open_pool: OpenPool
) -> None:
    pool = open_pool(one_worker, "z")
    wait_for(lambda: "no worker offers" in (pool.trouble() or ""), "word of what is missing")
    assert pool.free_sets() == ()
    with pytest.raises(DeviceBusy, match=r"a device set of the plan \(z\), but only a$"):
        pool.submit(world.request(world.candidate({}), sets_of("z"), pairs=2, name="nowhere.1"))
    other = DeviceSet(id="a", platform="fixture", devices=("b",))
    pool._sets = (other,)
    assert pool.free_sets() == ()


def test_two_copies_of_a_round_on_one_cluster_leave_one_another_alone(
    one_worker: Cluster, world: World, open_pool: OpenPool
) -> None:
    pools = [open_pool(one_worker, "a", store=store * 64) for store in "56"]
    candidate = world.candidate(slow_program(0.1))
    futures, seen = [], [0, 0]
    for number, pool in enumerate(pools):
        wait_for(pool.free_sets, "a free device set")

        def on_trial(done: int, _planned: int, _trial: Trial, number: int = number) -> None:
            seen[number] = done

        # The same plan, the same names: only the stores differ.
        request = world.request(candidate, sets_of("a"), pairs=4, name="copied.1")
        futures.append(pool.submit(request, progress=on_trial))
        wait_for(lambda: seen[0], "a first trial")
    records = [future.result(timeout=60) for future in futures]
    assert [record.outcome for record in records] == ["complete", "complete"]
    assert records[0].trials[-1].ended_utc <= records[1].trials[0].started_utc
    assert [pool.late_records() for pool in pools] == [(), ()]


def test_k03_what_waits_behind_another_round_is_not_slow_and_does_not_hold_up_its_own_end(
    one_worker: Cluster, world: World, open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"first.1": 600.0, "second.1": 1.0}
    monkeypatch.setattr(flights, "time_limit_s", lambda request: limits[request.experiment_id])
    first, second = (open_pool(one_worker, "a", store=store * 64) for store in "56")
    seen: list[int] = []
    for pool in (first, second):
        wait_for(pool.free_sets, "a free device set")
    slow = world.request(world.candidate(slow_program(0.3)), sets_of("a"), pairs=200, name="first.1")
    long = first.submit(slow, progress=lambda done, *_: seen.append(done))
    wait_for(lambda: seen, "a first trial")
    quick = world.request(world.candidate({}, "quick"), sets_of("a"), pairs=2, name="second.1")
    waiting = second.submit(quick)
    # Far longer than its own limit, while the other round has the device.
    wait_for(lambda: len(seen) > 6, "several trials of the first round")
    assert not waiting.done()
    second.close()
    record = waiting.result(timeout=0)
    assert (record.outcome, record.reason, record.trials) == ("infrastructure", "interrupted", ())
    assert not long.done()
    first.close()


def test_k03_who_waits_for_a_device_is_told_to_wait_on_and_measures_in_the_end(
    one_worker: Cluster, world: World, open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []
    real = flights.wait_on

    async def wait_on(link: Link, worker: str, run: str, seconds: float) -> None:
        await real(link, worker, run, seconds)
        told.append(seconds)

    monkeypatch.setattr(flights, "wait_on", wait_on)
    monkeypatch.setattr(flights, "time_limit_s", lambda _: 6.0)
    pool = open_pool(one_worker, "a")
    wait_for(pool.free_sets, "the device set")
    with acquire_set(["fixture:a"], root=one_worker.leases, purpose="a longer round") as held:
        assert held is not None
        future = pool.submit(world.request(world.candidate({}), sets_of("a"), pairs=2, name="patient.1"))
        wait_for(lambda: len(told) == 2 or future.done(), "word that it is still wanted, past its limit")
    assert future.result(timeout=60).outcome == "complete"


def test_a_worker_that_goes_while_it_is_chosen_costs_the_try_and_not_the_serve(
    one_worker: Cluster, world: World, open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = open_pool(one_worker, "a")
    wait_for(pool.free_sets, "the device set")
    look = pool._places

    def look_before_it_goes() -> object:
        found = look()
        pool._link.workers = {}
        return found

    monkeypatch.setattr(pool, "_places", look_before_it_goes)
    request = world.request(world.candidate({}), sets_of("a"), pairs=2, name="going.1")
    # The next look at the cluster finds it again.
    assert pool.submit(request).result(timeout=60).outcome == "complete"


def test_a_large_candidate_is_sent_without_a_word_of_dask(
    one_worker: Cluster, world: World, open_pool: OpenPool, recwarn: pytest.WarningsRecorder
) -> None:
    candidate = world.candidate({})
    (candidate / "large").write_bytes(random.Random(1).randbytes(12 << 20))
    request = world.request(candidate, sets_of("a"), pairs=2, name="large.1")
    record = measured(open_pool(one_worker, "a"), request)
    assert (record.outcome, record.reason) == ("complete", None)
    assert [str(one.message) for one in recwarn] == []


def test_what_nobody_foresaw_is_an_infrastructure_breakage_and_ends_no_serve(
    one_worker: Cluster, world: World, open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> object:
        raise ClosedClientError("Client is closed. Can't send update-graph message.")

    pool = open_pool(one_worker, "a")
    monkeypatch.setattr(asking, "client_of", broken)
    record = measured(pool, world.request(world.candidate({}), sets_of("a"), pairs=2, name="closed.0"))
    assert (record.outcome, record.reason) == ("infrastructure", "worker-error")
    assert "Client is closed" in (record.detail or "")


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
