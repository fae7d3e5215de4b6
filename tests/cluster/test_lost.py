"""K02: workers, schedulers and connections that are lost; every ticket has one verdict."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster.conftest import sets_of, slow_program
from measure.worlds import World
from support.cluster import Cluster, cluster, fixture_sets
from support.killing import Scene, assert_nothing_runs, assert_one_verdict_each, scene, wait_for
from support.program import BENCH

from roundkit.core.canonical import parse_json
from roundkit.measure.cluster.pool import DaskPool
from roundkit.models.experiment import ExperimentRecord
from roundkit.store import open_store, store_exists

OpenPool = Callable[..., DaskPool]
_PAIRS = 6


def begun(pool: DaskPool, world: World, name: str, seconds: float = 0.3) -> object:
    """Start an experiment and return its future once its first trial is done."""
    seen: list[int] = []
    candidate = world.candidate(slow_program(seconds), f"slow-{name}")
    request = world.request(candidate, sets_of("a"), pairs=_PAIRS, name=name)
    wait_for(pool.free_sets, "a free device set")
    future = pool.submit(request, progress=lambda done, *_: seen.append(done))
    wait_for(lambda: seen, "a first trial")
    return future


@pytest.mark.slow
def test_k02_a_scheduler_that_restarts_costs_the_try_and_the_late_record_still_comes(
    running: Cluster, world: World, open_pool: OpenPool
) -> None:
    running.start_worker("late", fixture_sets(["a"]))
    pool = open_pool(running, "a")
    future = begun(pool, world, "late.1")
    running.kill(running.scheduler)
    record: ExperimentRecord = future.result(timeout=60)  # type: ignore[attr-defined]
    assert (record.outcome, record.reason, record.trials) == ("infrastructure", "scheduler-lost", ())
    wait_for(lambda: "does not answer" in (pool.trouble() or ""), "word of the missing scheduler")
    assert pool.free_sets() == ()
    running.start_scheduler()
    late: list[ExperimentRecord] = []
    wait_for(lambda: late.extend(pool.late_records()) or late, "the record of the run that was given up")
    # That it comes whole is what counts here. On a busy machine the run itself may end early by a clock that
    # the slow program's trials do not keep; its record then says so.
    assert [one.experiment_id for one in late] == ["late.1"]
    assert late[0].outcome in ("complete", "candidate-broke")
    assert len(late[0].trials) == 2 * _PAIRS + 2 or late[0].reason is not None
    assert pool.trouble() is None
    running.kill(running.workers.pop("late"))


def test_k02_a_worker_killed_in_mid_trial_is_an_infrastructure_breakage(
    running: Cluster, world: World, open_pool: OpenPool
) -> None:
    running.start_worker("killed", fixture_sets(["a"]))
    pool = open_pool(running, "a")
    future = begun(pool, world, "killed.1")
    running.kill(running.workers.pop("killed"))
    record: ExperimentRecord = future.result(timeout=60)  # type: ignore[attr-defined]
    assert (record.outcome, record.reason, record.trials) == ("infrastructure", "worker-lost", ())
    wait_for(lambda: not pool.free_sets(), "an end of the device set")
    running.start_worker("next", fixture_sets(["a"]))
    wait_for(pool.free_sets, "a free device set")
    request = world.request(world.candidate({}), sets_of("a"), pairs=2, name="killed.2")
    assert pool.submit(request).result(timeout=60).outcome == "complete"
    running.kill(running.workers.pop("next"))


@pytest.mark.slow
def test_k02_a_worker_that_was_cut_off_comes_back_with_a_late_record(
    world: World, open_pool: OpenPool, open_folder: Path
) -> None:
    with cluster(open_folder / "cluster", worker_ttl="4s") as made:
        made.start_worker("cut", fixture_sets(["a"]))
        pool = open_pool(made, "a")
        future = begun(pool, world, "cut.1")
        made.workers["cut"].send_signal(signal.SIGSTOP)
        record: ExperimentRecord = future.result(timeout=60)  # type: ignore[attr-defined]
        assert (record.outcome, record.reason) == ("infrastructure", "worker-lost")
        made.workers["cut"].send_signal(signal.SIGCONT)
        late: list[ExperimentRecord] = []
        wait_for(
            lambda: late.extend(pool.late_records()) or late, "the record of the worker that was cut off"
        )
        assert late[0].experiment_id == "cut.1"


def served(open_folder: Path, lanes: dict[str, float], made: Cluster) -> Scene:
    """Launch a round whose trials take long enough to be interrupted."""
    slow = BENCH.replace("    knobs = load_knobs()\n", "    time.sleep(0.2)\n    knobs = load_knobs()\n")
    return scene(
        open_folder / "s", lanes, device_sets=fixture_sets(["a", "b"]), files={"bench/bench.py": slow}
    )


def measuring(submitted: Scene) -> bool:
    if not store_exists(submitted.folder.database):
        return False
    with open_store(submitted.folder.database, read_only=True) as store:
        return any(ticket.state == "measuring" for ticket in store.tickets.all())


@pytest.mark.slow
def test_k02_workers_and_scheduler_die_and_every_ticket_has_one_verdict(open_folder: Path) -> None:
    with cluster(open_folder / "cluster") as made:
        submitted = served(open_folder, {"L1": 0.5, "L2": 0.4, "L3": 0.3}, made)
        for name in ("a", "b"):
            made.start_worker(name, fixture_sets([name]))
        serve = made.start("serve", submitted.folder.root, "--until-idle", *made.words())
        wait_for(lambda: measuring(submitted), "a ticket being measured")
        made.kill(made.workers["a"])
        made.kill(made.workers["b"])
        wait_for(lambda: waiting(submitted, made), "word that nothing can be measured")
        made.start_worker("a", fixture_sets(["a"]))
        wait_for(lambda: measuring(submitted), "a ticket being measured again")
        made.kill(made.scheduler)
        wait_for(lambda: "does not answer" in (waiting(submitted, made) or ""), "word of the scheduler")
        made.start_scheduler()
        made.start_worker("b", fixture_sets(["b"]))
        said, _ = serve.communicate(timeout=300)
        assert serve.returncode == 0, said
        assert_one_verdict_each(submitted.folder, made.leases, submitted.tickets)
        assert_nothing_runs(submitted.folder)
        with open_store(submitted.folder.database, read_only=True) as store:
            records = store.experiments.records()
            late = store.experiments.duplicates()
            noted = [event.fields for event in store.events.all() if event.kind == "late-record"]
            assert {ticket.verdict.verdict for ticket in store.tickets.all() if ticket.verdict} <= {
                "pass",
                "invalid",
            }
        assert {record.reason for record in records} & {"worker-lost", "scheduler-lost"}
        assert sorted(record.digest() for record in late) == sorted(fields["sha256"] for fields in noted)
        made.run("close", submitted.folder.root, *made.words())
        evidence = next((submitted.repo.root / "evidence").rglob("index.json")).parent
        assert "every check passed" in made.run("audit", evidence)


def waiting(submitted: Scene, made: Cluster) -> str | None:
    document = parse_json(made.run("status", submitted.folder.root, "--json").encode(), place="status")
    reason: str | None = document["waiting"]
    return reason
