"""K04: 32 workers on this machine, as real processes, measure one round."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from support.cluster import cluster, fixture_sets
from support.killing import assert_nothing_runs, assert_one_verdict_each, scene
from support.synthetic import knob, scripted_lane

from roundkit.store import open_store

WORKERS = 32
LANES = 8


@pytest.mark.slow
def test_k04_thirty_two_workers_share_the_tickets_of_a_round(open_folder: Path) -> None:
    names = [f"d{number}" for number in range(WORKERS)]
    values: dict[str, float | str] = {f"L{number}": 0.3 for number in range(1, LANES + 1)}
    made = scene(open_folder / "s", values, device_sets=fixture_sets(names))
    tickets = list(made.tickets)
    for lane, step in itertools.product(values, (1, 2, 3)):
        changed = {f"knobs/{lane}.json": knob(0.3 + step / 10)}
        tickets.append(scripted_lane(made.folder.clone(lane), changed)["ticket"])
    with cluster(open_folder / "cluster") as running:
        for name in names:
            running.start_worker(name, fixture_sets([name]), wait=False)
        said = running.run("serve", made.folder.root, "--until-idle", *running.words(), timeout=1500)
        assert f"tickets {WORKERS} have a verdict, 0 are rejected" in said
        assert_one_verdict_each(made.folder, running.leases, tickets)
        assert_nothing_runs(made.folder)
    with open_store(made.folder.database, read_only=True) as store:
        records = [record for record in store.experiments.records() if record.lease is not None]
    used = [record.lease for record in records if record.lease is not None]
    assert len({lease.device_set for lease in used}) > WORKERS // 2
    for one, other in itertools.combinations(used, 2):
        apart = one.released_utc <= other.acquired_utc or other.released_utc <= one.acquired_utc
        assert apart or one.device_set != other.device_set
