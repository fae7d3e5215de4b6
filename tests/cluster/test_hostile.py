"""What a candidate reaches on a worker, what a lying worker gets on record, and disks that are full."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from cluster.conftest import sets_of, slow_program
from measure.worlds import World
from support.cluster import Cluster, cluster, fixture_sets
from support.killing import wait_for
from support.small_disk import fill, mounted_disk
from support.synthetic import reachable_folder

from roundkit.core.clock import Deadline, now_utc
from roundkit.host.lease import holders
from roundkit.measure.broke import MeasurementBroke
from roundkit.measure.cluster.arrival import arrival_problem, late_problem
from roundkit.measure.cluster.bench import Bench, _Run
from roundkit.measure.cluster.certificates import make_certificates
from roundkit.measure.cluster.pool import DaskPool
from roundkit.measure.cluster.replies import read_request, refused, reply_of
from roundkit.measure.cluster.shelf import Shelf
from roundkit.models.cluster import FinishedRun, RemoteReply, RemoteRequest, WorkerState
from roundkit.models.experiment import ExperimentRecord
from roundkit.rules.record_checks import record_problem

OpenPool = Callable[..., DaskPool]
_WHAT_IT_REACHES = """
import json, os, pathlib, pickle, socket, sys
class Evil:
    def __reduce__(self):
        return os.system, ("touch {marker}",)
missing = object()
def attempt(what):
    try:
        got = what()
    except Exception:
        return None
    return None if got is missing else str(got)[:200]
def abstract_sockets():
    lines = [line for line in open("/proc/net/unix") if "@" in line]
    return lines or missing
def is_a_worker(process):
    return b"--device-sets" in open("/proc/" + process + "/cmdline", "rb").read() or missing
def look():
    found = {{
        "port": attempt(lambda: socket.create_connection(("127.0.0.1", {port}), timeout=1)),
        "abstract": attempt(abstract_sockets),
    }}
    for place in {places!r}:
        found[place] = attempt(lambda: os.listdir(place))
    for process in filter(str.isdigit, os.listdir("/proc")):
        found["process " + process] = attempt(lambda: is_a_worker(process))
    print(json.dumps({{name: value for name, value in found.items() if value is not None}}), file=sys.stderr)
    for name in ("x.pkl", "repetition-9.json"):
        pathlib.Path(os.environ["ROUNDKIT_OUTPUT_DIR"], name).write_bytes(pickle.dumps(Evil()))
def work(payload):
    look()
    return sum(range(payload["n"]))
"""


@pytest.fixture(scope="module")
def encrypted() -> Iterator[Cluster]:
    with reachable_folder() as folder:
        make_certificates(folder / "certs", days=1)
        with cluster(folder / "cluster", tls=folder / "certs") as made:
            made.start_worker("w", fixture_sets(["a"]))
            yield made


def measured(pool: DaskPool, world: World, files: dict[str, str], name: str) -> ExperimentRecord:
    wait_for(pool.free_sets, "a free device set")
    request = world.request(world.candidate(files, f"built-{name}"), sets_of("a"), pairs=2, name=name)
    return pool.submit(request).result(timeout=120)


def test_k05_a_candidate_reaches_neither_sockets_nor_keys_nor_other_jobs(
    encrypted: Cluster, world: World, open_pool: OpenPool
) -> None:
    assert encrypted.tls is not None
    marker = encrypted.root / "unpickled"
    home = encrypted.root / "w"
    inner = [home / name for name in ("cache", "cache/trees", "spool", "runs")]
    places = [str(place) for place in (encrypted.tls, encrypted.leases, home, *inner)]
    program = _WHAT_IT_REACHES.format(marker=marker, port=encrypted.port, places=places)
    pool = open_pool(encrypted, "a")
    record = measured(pool, world, {"prog/core.py": program}, "reach.1")
    assert record.trials
    told = [
        line
        for trial in record.trials
        for run in trial.executions.values()
        for line in run.stderr_tail.splitlines()
    ]
    assert told
    assert set(told) == {"{}"}
    assert not marker.exists()
    # Whatever came of that, the worker goes on.
    assert measured(pool, world, {}, "reach.2").outcome == "complete"


def test_k05_a_worker_listens_to_nobody_without_certificates(encrypted: Cluster) -> None:
    """Dask's engine has a server of its own, in plain HTTP, that tells of tasks and logs."""
    here = psutil.Process(encrypted.workers["w"].pid)
    at = [one.laddr for one in here.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    answered = set()
    for ip, port in at:
        with suppress(OSError), socket.create_connection((ip, port), timeout=30) as stream:
            stream.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            if stream.recv(5) == b"HTTP/":
                answered.add(ip)
    assert len({port for ip, port in at if ip != "127.0.0.1"}) == 1
    assert answered == {"127.0.0.1"}


def test_a_tree_of_holes_does_not_fill_the_coordinators_memory(
    encrypted: Cluster, world: World, open_pool: OpenPool
) -> None:
    built = world.candidate({})
    with (built / "huge").open("wb") as stream:
        stream.truncate(128 << 20)
    pool = open_pool(encrypted, "a")
    wait_for(pool.free_sets, "a free device set")
    record = pool.submit(world.request(built, sets_of("a"), pairs=2, name="hollow.1")).result(timeout=60)
    assert (record.outcome, record.reason) == ("infrastructure", "tree-hollow")


@pytest.fixture(scope="module")
def honest(encrypted: Cluster) -> Iterator[tuple[ExperimentRecord, RemoteRequest, WorkerState]]:
    """A record as it came, the request as it went, and what the worker said of itself."""
    from cluster.conftest import PLAN, STORE
    from measure.worlds import SINGLE, make_spec

    with reachable_folder() as folder:
        world = World(folder, make_spec(SINGLE))
        changed = world.candidate({"prog/extra.py": "x = 1\n"})
        request = world.request(changed, sets_of("a"), pairs=2, name="honest.1")
        pool = DaskPool(
            sets_of("a"),
            plan_digest=PLAN,
            store_sha256=STORE,
            scheduler=encrypted.address,
            scratch=folder,
            tls=encrypted.tls,
        )
        shelf = Shelf(folder, STORE)
        try:
            wait_for(pool.free_sets, "a free device set")
            state = next(iter(pool._link.workers.values()))
            record = pool.submit(request).result(timeout=60)
            remote, _ = shelf.pack(request, sets_of("a")[0], now_utc())
        finally:
            pool.close()
            shelf.close()
        yield record, remote, state


def _swapped(document: dict[str, Any]) -> None:
    document["baseline"], document["candidate"] = document["candidate"], document["baseline"]


def _sides_of_trials(document: dict[str, Any]) -> None:
    for trial in document["trials"]:
        trial["planned"]["side"] = {"baseline": "candidate", "candidate": "baseline"}[
            trial["planned"]["side"]
        ]


def _all_values(document: dict[str, Any], value: float) -> None:
    for trial in document["trials"]:
        trial["value"], trial["metrics"]["latency_ms"] = value, [value]


LIES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another-experiment": (lambda d: d.update(experiment_id="other.1"), "experiment_id"),
    "another-plan": (lambda d: d.update(run_spec_sha256="f" * 64), "run specification"),
    "another-set": (lambda d: d["lease"].update(device_set="b"), "device set"),
    "other-devices": (lambda d: d["lease"].update(devices=["b"]), "device set"),
    "no-lease": (lambda d: d.update(lease=None), "held no device"),
    "swapped-sides": (_swapped, "files"),
    "swapped-trials": (_sides_of_trials, "schedule"),
    "another-candidate": (lambda d: d["candidate"].update(files_sha256_after="f" * 64), "candidate's files"),
    "fewer-trials": (lambda d: d.update(trials=d["trials"][:4]), "complete with 4 of"),
    "no-trials": (lambda d: d.update(trials=[]), "complete with 0 of"),
    "weaker-noise": (
        lambda d: d.update(session_noise={"checks": 1, "variance": 0.0}),
        "noise between sessions",
    ),
    "better-value": (lambda d: d["trials"][-1].update(value=1e-9), "value is"),
    "better-samples": (lambda d: d["trials"][-1]["metrics"].update(latency_ms=[1e-9]), "value is"),
    "no-metric": (lambda d: d["trials"][-1].update(metrics={}), "value is"),
    "no-boundary": (lambda d: d.update(boundaries={}), "no boundary"),
    "blames-the-candidate": (
        lambda d: d.update(outcome="candidate-broke", reason="candidate-crashed"),
        "what broke",
    ),
    "another-machine": (lambda d: d.update(machine_sha256="f" * 64), "machine"),
    "negative": (lambda d: _all_values(d, -1.0), "above zero"),
    "huge": (lambda d: _all_values(d, 1e308), ""),
    "backwards": (lambda d: d.update(ended_utc="2020-01-01T00:00:00.000000Z"), "lie outside"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_record_that_is_not_what_was_asked_for_is_no_record(
    honest: tuple[ExperimentRecord, RemoteRequest, WorkerState], lie: str
) -> None:
    record, remote, state = honest
    spec = remote.request.run_spec

    def problem(one: ExperimentRecord) -> str | None:
        return arrival_problem(one, remote, state) or record_problem(one, spec)

    assert problem(record) is None
    tell, pattern = LIES[lie]
    document = json.loads(record.to_bytes())
    tell(document)
    found = problem(ExperimentRecord.model_validate_json(json.dumps(document), strict=True))
    assert found is not None
    assert pattern in found


def test_a_late_answer_counts_only_for_the_run_that_it_was_said_to_be_of(
    honest: tuple[ExperimentRecord, RemoteRequest, WorkerState],
) -> None:
    record, remote, _ = honest
    finished = FinishedRun(
        run=remote.run,
        store_sha256=remote.store_sha256,
        plan_digest=remote.plan_digest,
        experiment_id=record.experiment_id,
    )
    reply = reply_of(remote, "record", record=record)
    assert late_problem(reply, finished) is None
    for lie in (
        (reply, finished.model_copy(update={"experiment_id": "other.1"})),
        (reply, finished.model_copy(update={"store_sha256": "6" * 64})),
        (reply.model_copy(update={"run": "f" * 64}), finished),
        (refused(remote, "worker-error", "it broke"), finished),
        (reply_of(remote, "record", record=record.model_copy(update={"experiment_id": "o.1"})), finished),
    ):
        assert late_problem(*lie) is not None


def test_a_run_that_is_stopped_while_its_trees_are_on_their_way_is_never_begun(
    honest: tuple[ExperimentRecord, RemoteRequest, WorkerState], place: Path
) -> None:
    _, remote, _ = honest
    bench = Bench(sets_of("a"), place / "home", lease_root=place, keep_trees=1)
    assert bench.submit(remote, b"", print).result(timeout=60).kind == "missing"
    assert bench.stop(remote.run) is False
    reply = bench.submit(remote, b"", print).result(timeout=60)
    assert (reply.kind, reply.reason) == ("refused", "interrupted")


def test_a_run_that_ends_while_it_is_handed_over_again_is_not_measured_twice(
    honest: tuple[ExperimentRecord, RemoteRequest, WorkerState],
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record, remote, _ = honest
    bench = Bench(sets_of("a"), place / "home", lease_root=place, keep_trees=1)
    run = bench._runs[remote.run] = _Run(remote, b"", print, timedelta(), Deadline.after(60))
    look = bench.spool.get

    def look_while_it_ends(name: str) -> RemoteReply | None:
        found = look(name)
        if not run.reply.done():
            reply = reply_of(remote, "record", record=record)
            bench.spool.keep(remote, reply)
            run.reply.set_result(reply)
        return found

    monkeypatch.setattr(bench.spool, "get", look_while_it_ends)
    assert bench.submit(remote, b"", print) is run.reply
    look_while_it_ends(remote.run)
    assert bench.submit(remote, b"", print).result(timeout=60).record == record


def test_a_request_that_is_not_the_run_that_it_says_it_is_is_refused(
    honest: tuple[ExperimentRecord, RemoteRequest, WorkerState],
) -> None:
    _, remote, _ = honest
    assert read_request(remote.to_bytes()) == remote
    for changed in ({"run": "f" * 64}, {"plan_digest": "f" * 64}, {"store_sha256": "f" * 64}):
        with pytest.raises(MeasurementBroke, match="request-malformed"):
            read_request(remote.model_copy(update=changed).to_bytes())


@pytest.mark.parametrize(
    "answer",
    [
        "b'{}'",
        "b'\\xff'",
        "reply().replace(b'\"outcome\"', b'\"came out\"')",
        "'text'",
        "reply()[:-1]",
        "__import__('re').sub(rb'\"value\":[0-9.]+', rb'\"value\":NaN', reply())",
    ],
    ids=["empty", "no-text", "missing-field", "no-bytes", "cut-off", "no-number"],
)
@pytest.mark.slow
def test_an_answer_that_cannot_be_read_is_an_infrastructure_breakage(
    running: Cluster, world: World, open_pool: OpenPool, answer: str
) -> None:
    liar = (
        "import roundkit.models.cluster as models\n"
        "real = models.RemoteReply.to_bytes\n"
        "def lie(self):\n"
        "    reply = lambda: real(self)\n"
        f"    return {answer} if self.kind == 'record' else real(self)\n"
        "models.RemoteReply.to_bytes = lie\n"
        "import roundkit.measure.cluster.spool as spool\n"
        "spool.Spool.keep = lambda *_: None\n"
    )
    running.start_worker("liar", fixture_sets(["a"]), prelude=liar)
    try:
        record = measured(open_pool(running, "a"), world, {}, "lie.1")
        assert (record.outcome, record.trials) == ("infrastructure", ())
        assert record.reason in ("record-wrong", "worker-error")
    finally:
        running.kill(running.workers.pop("liar"))


def test_r26_a_worker_whose_disk_is_full_says_so_and_goes_on_with_space(
    running: Cluster, world: World, open_pool: OpenPool, place: Path
) -> None:
    with mounted_disk(place, 32) as disk:
        running.start_worker("full", fixture_sets(["a"]), home=disk / "home")
        try:
            pool = open_pool(running, "a")
            wait_for(pool.free_sets, "a free device set")
            filler = fill(disk)
            # What was sent before the worker could say so breaks on the full disk, and is no ticket's fault.
            wait_for(lambda: "no space is left" in (pool.trouble() or ""), "word of the full disk")
            assert pool.free_sets() == ()
            filler.unlink()
            assert measured(pool, world, {}, "full.1").outcome == "complete"
        finally:
            running.kill(running.workers.pop("full"))


def test_r26_a_record_that_finds_no_space_in_the_spool_arrives_all_the_same(
    running: Cluster, world: World, open_pool: OpenPool, place: Path
) -> None:
    with mounted_disk(place, 1) as disk:
        home = running.root / "spoolless"
        home.mkdir(mode=0o711)
        (home / "spool").symlink_to(disk)
        running.start_worker("spoolless", fixture_sets(["a"]), home=home)
        try:
            fill(disk)
            assert measured(open_pool(running, "a"), world, {}, "spool.1").outcome == "complete"
        finally:
            running.kill(running.workers.pop("spoolless"))


def test_ctrl_c_ends_a_worker_in_a_sentence_and_its_record_leaves_first(
    running: Cluster, world: World, open_pool: OpenPool
) -> None:
    running.start_worker("stopped", fixture_sets(["a"]))
    pool = open_pool(running, "a")
    begun: list[int] = []
    wait_for(pool.free_sets, "a free device set")
    request = world.request(world.candidate(slow_program(0.3)), sets_of("a"), pairs=20, name="stopped.1")
    future = pool.submit(request, progress=lambda done, *_: begun.append(done))
    wait_for(lambda: begun, "a first trial")
    process = running.workers.pop("stopped")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0
    said = running.said("stopped")
    assert "stopping: the running trials end" in said
    assert "Traceback" not in said
    record = future.result(timeout=60)
    assert (record.outcome, record.reason) == ("infrastructure", "interrupted")
    assert 0 < len(record.trials) < 42
    assert holders(running.leases) == []
