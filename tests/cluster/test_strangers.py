"""Workers that are not what they should be: another version, another cluster, another clock, a second one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from cluster.conftest import PLAN, STORE, sets_of
from measure.worlds import World
from support.cluster import Cluster, cluster, fixture_sets, free_port
from support.killing import wait_for
from support.synthetic import reachable_folder

from roundkit.core.clock import now_utc
from roundkit.core.errors import Refused
from roundkit.measure.cluster import certificates, security
from roundkit.measure.cluster.pool import DaskPool
from roundkit.measure.cluster.sets import set_problem, shared_names
from roundkit.models.cluster import OfferedSet, WorkerState
from roundkit.models.round_plan import DeviceSet

OpenPool = Callable[..., DaskPool]

_OLD = "import roundkit\nroundkit.__version__ = '0.0.1'"
_CLOCK = """
import datetime
import roundkit.core.clock as clock
class Other(datetime.datetime):
    @classmethod
    def now(cls, zone=None):
        return datetime.datetime.now(zone) + datetime.timedelta(seconds={seconds})
clock.datetime = Other
"""


@pytest.fixture
def ended(running: Cluster) -> Iterator[Cluster]:
    """A scheduler whose workers end after the test."""
    yield running
    for name in list(running.workers):
        running.kill(running.workers.pop(name))


def test_a_worker_of_another_version_takes_no_work_and_is_named(ended: Cluster, open_pool: OpenPool) -> None:
    ended.start_worker("old", fixture_sets(["a"]), prelude=_OLD)
    pool = open_pool(ended, "a")
    wait_for(lambda: "is of roundkit 0.0.1" in (pool.trouble() or ""), "word of the other version")
    assert pool.free_sets() == ()


@pytest.mark.parametrize("seconds", [7200, -7200], ids=["ahead", "behind"])
def test_times_of_a_worker_whose_clock_is_another_are_by_the_coordinators(
    ended: Cluster, world: World, open_pool: OpenPool, seconds: int
) -> None:
    port = free_port()
    ended.start_worker("w", fixture_sets(["a"]), prelude=_CLOCK.format(seconds=seconds), port=port)
    pool = open_pool(ended, "a")
    wait_for(pool.free_sets, "a free device set")
    before = now_utc()
    assert next(iter(pool._link.workers)).endswith(f":{port}")
    record = pool.submit(world.request(world.candidate({}), sets_of("a"), pairs=2, name="clock.1")).result(60)
    after = now_utc()
    assert (record.outcome, record.reason) == ("complete", None)
    assert record.lease is not None
    first, last = record.trials[0], record.trials[-1]
    moments = [before, record.started_utc, first.started_utc, last.ended_utc, record.ended_utc, after]
    assert moments == sorted(moments)
    assert before <= record.lease.acquired_utc <= record.lease.released_utc <= after
    assert record.ended_utc - record.started_utc < timedelta(seconds=60)


@pytest.mark.slow
def test_two_workers_do_not_share_a_home_or_a_name(ended: Cluster) -> None:
    ended.start_worker("first", fixture_sets(["a"]))
    for words, code, told in (
        ({"home": ended.root / "first"}, "home-taken", f"pid {ended.workers['first'].pid}"),
        ({"home": ended.root / "other"}, "name-taken", "is called first"),
    ):
        first = ended.workers["first"]
        log = ended.said("first")
        ended.start_worker("first", fixture_sets(["a"]), wait=False, **words)  # type: ignore[arg-type]
        second, ended.workers["first"] = ended.workers["first"], first
        assert second.wait(timeout=60) == 3
        said = ended.said("first").removeprefix(log)
        assert f"[{code}]" in said
        assert told in said
        assert "Traceback" not in said
        assert first.poll() is None


def test_several_machines_under_one_name_are_no_machine() -> None:
    own = DeviceSet(id="a", platform="cpu", devices=("0",), machine="alpha")
    offered = OfferedSet(device_set=own, held=False, problem=None)

    def state(machine: str | None) -> WorkerState:
        return WorkerState(
            format="roundkit-worker/1", version="1", machine="M", machine_sha256=machine, sets=(offered,)
        )

    one = state("1" * 64)
    assert set_problem(own, offered, shared_names([one, one, state(None)])) is None
    problem = set_problem(own, offered, shared_names([one, state("2" * 64)]))
    assert problem == "several machines call themselves alpha"
    anywhere = own.model_copy(update={"machine": None})
    assert set_problem(anywhere, offered, frozenset()) == "it has machine alpha and not none as in the plan"


def test_certificates_that_do_not_hold_now_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as then:
        then.setattr(certificates, "now_utc", lambda: now_utc() - timedelta(days=2))
        certificates.make_certificates(tmp_path / "old", days=1)
        then.setattr(certificates, "now_utc", lambda: now_utc() + timedelta(days=2))
        certificates.make_certificates(tmp_path / "new", days=1)
    for name in ("old", "new"):
        with pytest.raises(Refused, match=r"tls-expired.*\n.*clock"):
            security.check_address("tls://10.0.0.1:8786", tmp_path / name, place="--scheduler")
    (tmp_path / "old" / "cluster.pem").write_text("no certificate")
    with pytest.raises(Refused, match="tls-files"):
        security.check_address("tls://10.0.0.1:8786", tmp_path / "old", place="--scheduler")
    with pytest.raises(Refused, match="scheduler-address"):
        security.check_address("tls://10.0.0.1", tmp_path / "new", place="--scheduler")


def test_a_worker_of_another_cluster_is_told_so(tmp_path: Path) -> None:
    with reachable_folder() as folder:
        for name in ("certs", "others"):
            certificates.make_certificates(folder / name, days=1)
        with cluster(folder / "cluster", tls=folder / "certs") as made:
            made.start_worker("stranger", fixture_sets(["a"]), wait=False, tls=folder / "others")
            wait_for(lambda: "does not answer" in made.said("stranger"), "word of the refusal")
            assert "is not of the cluster" in made.said("stranger")
            with closing(
                DaskPool(
                    sets_of("a"),
                    plan_digest=PLAN,
                    store_sha256=STORE,
                    scheduler=made.address,
                    scratch=tmp_path,
                    tls=folder / "certs",
                )
            ) as pool:
                wait_for(lambda: "no worker is connected" in (pool.trouble() or ""), "an empty cluster")
