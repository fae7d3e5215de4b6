"""K03: two rounds on one cluster and a local one beside them share a host and take turns."""

from __future__ import annotations

from datetime import datetime
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from support.cluster import cluster, fixture_sets
from support.killing import Scene, assert_one_verdict_each, scene, wait_for
from support.synthetic import knob, scripted_lane

from roundkit.host.lease import acquire_set
from roundkit.models.experiment import ExperimentRecord
from roundkit.store import open_store, store_exists

_MOST_IN_A_ROW = 2


@pytest.mark.slow
def test_k03_two_rounds_on_a_cluster_and_a_local_one_share_a_device_in_turns(open_folder: Path) -> None:
    rounds: dict[str, Scene] = {}
    for name in ("north", "south", "local"):
        made = scene(open_folder / name, {"L1": 0.5, "L2": 0.4}, device_sets=fixture_sets(["a"]))
        more = scripted_lane(made.folder.clone("L1"), {"knobs/L1.json": knob(0.3)})["ticket"]
        rounds[name] = Scene(made.root, made.repo, made.folder, (*made.tickets, more))
    with cluster(open_folder / "cluster") as running:
        running.start_worker("w", fixture_sets(["a"]))
        # All three begin together: until then, somebody else has the device.
        other = acquire_set(["fixture:a"], root=running.leases, purpose="the test")
        assert other is not None
        serves = {
            name: running.start(
                "serve", one.folder.root, "--until-idle", *([] if name == "local" else running.words())
            )
            for name, one in rounds.items()
        }
        wait_for(lambda: started(rounds["north"]) and started(rounds["south"]), "experiments at the worker")
        wait_for(
            lambda: len(list(running.leases.glob("*.turn"))) == 2, "the worker and the local round in line"
        )
        other.release()
        for process in serves.values():
            said, _ = process.communicate(timeout=400)
            assert process.returncode == 0, said
        taken: list[tuple[datetime, datetime, str]] = []
        for name, one in rounds.items():
            assert_one_verdict_each(one.folder, running.leases, one.tickets)
            with open_store(one.folder.database, read_only=True) as store:
                taken += [(*held(record), name) for record in store.experiments.records() if record.lease]
    taken.sort()
    shared = [(first, second) for first, second in pairwise(taken) if first[1] > second[0]]
    assert not shared, "two held the device at once"
    # While all three had something to measure, nobody was passed over for long.
    begin = max(min(row[0] for row in taken if row[2] == name) for name in rounds)
    end = min(max(row[0] for row in taken if row[2] == name) for name in rounds)
    crowded = [name for start, _, name in taken if begin <= start <= end]
    assert max(len(list(run)) for _, run in groupby(crowded)) <= _MOST_IN_A_ROW, crowded


def started(one: Scene) -> bool:
    if not store_exists(one.folder.database):
        return False
    with open_store(one.folder.database, read_only=True) as store:
        return bool(store.experiments.unfinished())


def held(record: ExperimentRecord) -> tuple[datetime, datetime]:
    assert record.lease is not None
    return record.lease.acquired_utc, record.lease.released_utc
