"""K02: workers, schedulers and connections that are lost; every ticket has one verdict."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from cluster.conftest import sets_of, slow_program
from measure.worlds import World
from support.cluster import Cluster, cluster, cluster_apart, fixture_sets
from support.killing import Scene, assert_nothing_runs, assert_one_verdict_each, scene, wait_for
from support.program import BENCH

from roundkit.core.canonical import parse_json
from roundkit.host.lease import holders
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
    assert [(one.experiment_id, one.outcome, one.reason) for one in late] == [("late.1", "complete", None)]
    assert len(late[0].trials) == 2 * _PAIRS + 2
    assert pool.trouble() is None
    # Until somebody asks again, and so has kept it, it lies at the worker too.
    spool = running.root / "late/spool"
    assert list(spool.iterdir())
    assert pool.late_records() == ()
    wait_for(lambda: not list(spool.iterdir()), "the end of the worker's own copy")
    assert pool.late_records() == ()
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
    with cluster_apart(open_folder / "cluster", "cut", worker_ttl="4s") as made:
        made.start_worker("cut", fixture_sets(["a"]))
        pool = open_pool(made, "a")
        future = begun(pool, world, "cut.1")
        made.cut_off("cut")
        record: ExperimentRecord = future.result(timeout=60)  # type: ignore[attr-defined]
        assert (record.outcome, record.reason) == ("infrastructure", "worker-lost")
        made.let_back("cut")
        late: list[ExperimentRecord] = []
        wait_for(
            lambda: late.extend(pool.late_records()) or late, "the record of the worker that was cut off"
        )
        assert late[0].experiment_id == "cut.1"


class Relay:
    """A connection to a scheduler that breaks on one side only, as where a network is cut in between."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._near: list[socket.socket] = []
        self._far: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        with suppress(OSError):  # the end of the test closes it
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(self._target)
                self._near.append(near)
                self._far.append(far)
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)

    def cut(self) -> None:
        """Break every connection for whoever made it; the scheduler does not notice."""
        for near in self._near:
            near.shutdown(socket.SHUT_RDWR)
        self._near.clear()

    def notice(self) -> None:
        """Have the scheduler notice what was cut."""
        for far in self._far:
            with suppress(OSError):
                far.shutdown(socket.SHUT_RDWR)
        self._far.clear()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self.cut()
        self.notice()
        self._listening.close()


def test_k02_a_worker_that_comes_back_before_the_scheduler_missed_it_waits_for_its_own_name(
    running: Cluster, place: Path
) -> None:
    with closing(Relay(("127.0.0.1", running.port))) as relay:
        behind = Cluster(place / "behind", port=relay.port)
        behind.root.mkdir(mode=0o711)
        try:
            behind.start_worker("b", fixture_sets(["b"]))
            relay.cut()
            wait_for(
                lambda: "the scheduler still has a worker called b" in behind.said("b"), "the taken name"
            )
            relay.notice()
            wait_for(lambda: behind.said("b").count("connected as b") == 2, "the worker's return")
        finally:
            behind.stop()


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


@pytest.mark.slow
def test_ctrl_c_of_a_serve_on_a_cluster_loses_nothing_and_the_next_one_goes_on(open_folder: Path) -> None:
    with cluster(open_folder / "cluster") as made:
        submitted = served(open_folder, {"L1": 0.5, "L2": 0.4}, made)
        made.start_worker("a", fixture_sets(["a"]))
        serve = made.start("serve", submitted.folder.root, "--until-idle", *made.words())
        wait_for(lambda: measuring(submitted), "a ticket being measured")
        wait_for(lambda: holders(made.leases), "a device being held")
        serve.send_signal(signal.SIGINT)
        said, _ = serve.communicate(timeout=60)
        assert "draining: the running trials end" in said
        assert "Traceback" not in said
        assert holders(made.leases) == []
        with open_store(submitted.folder.database, read_only=True) as store:
            assert store.experiments.unfinished() == []
        made.run("serve", submitted.folder.root, "--until-idle", *made.words())
        assert_one_verdict_each(submitted.folder, made.leases, submitted.tickets)
