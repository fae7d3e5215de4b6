"""Records that nobody fetches: how long they stay, and what is said when they go."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

from cluster.conftest import STORE, sets_of
from measure.worlds import World
from support.cluster import Cluster, fixture_sets
from support.killing import wait_for

from roundkit.core.canonical import digest_file
from roundkit.core.clock import SteadyClock, now_utc
from roundkit.measure.cluster.arrival import lost_record
from roundkit.measure.cluster.replies import reply_of
from roundkit.measure.cluster.shelf import Shelf
from roundkit.measure.cluster.spool import Spool
from roundkit.models.cluster import RemoteReply, WorkerState

STATE = WorkerState(format="roundkit-worker/1", version="1", machine="M", machine_sha256=None, sets=())
_DAY_S = 86400


def kept(spool: Spool, world: World, *names: str) -> list[RemoteReply]:
    """Keep a record under each name, and return the replies that hold them."""
    shelf, replies = Shelf(world.root, STORE), []
    candidate = world.candidate({})
    for name in names:
        request = world.request(candidate, sets_of("a"), pairs=2, name=name)
        remote, _ = shelf.pack(request, request.device_sets[0], now_utc())
        record = lost_record(request, STATE, now_utc(), "worker-lost", "gone")
        replies.append(reply_of(remote, "record", record=record))
        spool.keep(remote, replies[-1])
    shelf.close()
    return replies


def age(folder: Path, days: float, *patterns: str) -> None:
    then = time.time() - days * _DAY_S
    for pattern in patterns:
        for path in folder.glob(pattern):
            os.utime(path, (then, then))


def test_a_record_that_nobody_fetched_goes_after_its_time_and_is_named_with_its_digest(
    place: Path, world: World
) -> None:
    spool = Spool(place / "spool")
    old, young = kept(spool, world, "old.1", "young.1")
    half = place / "spool/.half.tmp"
    half.write_bytes(b"{")
    digest = digest_file(half)
    assert spool.drop_older(timedelta(days=2)) == ()
    age(place / "spool", 3, f"{old.run}*", ".half*")
    lines = spool.drop_older(timedelta(days=2))
    assert old.record is not None
    assert len(lines) == 2
    assert f"the record of old.1 of round {old.record.round_id}, sha256 {old.record.digest()}" in lines[0]
    assert "for 2 days" in lines[0]
    assert f"the file .half.tmp, sha256 {digest}" in lines[1]
    assert [one.run for one in spool.all()] == [young.run]
    assert len(list((place / "spool").iterdir())) == 2
    # What is no file stops nothing: it is left, and said once.
    (place / "spool/z").mkdir()
    age(place / "spool", 3, "*")
    lines = spool.drop_older(timedelta(days=2))
    assert lines[0] == "'z' among the records is left where it is: it is no file"
    assert len(lines) == 2
    assert (spool.drop_older(timedelta(days=2)), spool.all()) == ((), ())


def test_a_clock_that_is_set_ahead_makes_no_record_old(place: Path, world: World) -> None:
    opened = SteadyClock(now_utc() - timedelta(days=100), time.monotonic())
    spool = Spool(place / "spool", opened)
    (young,) = kept(spool, world, "young.1")
    age(place / "spool", 100, "*")
    assert spool.drop_older(timedelta(days=2)) == ()
    assert [one.run for one in spool.all()] == [young.run]
    # Two days pass: they are two days by whatever clock.
    waited = SteadyClock(opened.utc, opened.at_s - timedelta(days=3).total_seconds())
    assert len(Spool(place / "spool", waited).drop_older(timedelta(days=2))) == 1


def test_a_worker_says_what_waits_at_it_and_what_it_removes(
    running: Cluster, place: Path, world: World
) -> None:
    home = place / "home"
    home.mkdir(mode=0o711)
    (old,) = kept(Spool(home / "spool"), world, "old.1")
    age(home / "spool", 91, "*")
    running.start_worker("tidy", fixture_sets(["a"]), home=home)
    try:
        wait_for(lambda: not list((home / "spool").iterdir()), "the end of the old record")
        assert old.record is not None
        wait_for(lambda: old.record and old.record.digest() in running.said("tidy"), "word of it")
        said = running.said("tidy")
        assert "1 records of earlier work wait for their coordinators" in said
        assert "nobody fetched it for 90 days, so it is removed: the record of old.1" in said
    finally:
        running.kill(running.workers.pop("tidy"))
