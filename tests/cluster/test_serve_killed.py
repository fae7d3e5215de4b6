"""K02: a serve or close on a cluster that is killed, wherever it was, loses nothing and leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cluster import Cluster, cluster, fixture_sets
from support.killing import (
    Scene,
    assert_nothing_runs,
    assert_one_verdict_each,
    run_until_killed,
    scene,
    wait_for,
)

from roundkit.host.lease import holders
from roundkit.store import open_store, store_exists

NAMES = ("a", "b")
ARRIVED = "roundkit.measure.cluster.flights:_record_of:1"
"""A record has arrived, and still lies at the worker."""
STAGES = (
    "roundkit.rounds.server:build_ticket:1",  # a candidate is about to be built
    "roundkit.measure.cluster.pool:fly:1",  # an A/A check is claimed, and was not sent
    "roundkit.rounds.server:record_aa:1",  # its record arrived, and is not in the store
    "roundkit.measure.cluster.pool:fly:2",  # a ticket is claimed, and was not sent
    ARRIVED,
    "roundkit.rounds.server:record_ticket:1",
)


@pytest.mark.slow
def test_k02_serve_killed_at_every_stage_on_a_cluster_gives_one_verdict_a_ticket(open_folder: Path) -> None:
    submitted = scene(open_folder / "s", {"L1": 0.5, "L2": 0.4}, device_sets=fixture_sets(NAMES))
    with cluster(open_folder / "cluster") as made:
        for name in NAMES:
            made.start_worker(name, fixture_sets([name]))
        scratch = {"TMPDIR": str(open_folder)}
        words = ("serve", submitted.folder.root, "--until-idle", *made.words())
        for stage in STAGES:
            assert run_until_killed(stage, made.leases, *words, **scratch), stage
        kill_in_flight(made, submitted, *words)
        made.run(*words)
        assert_one_verdict_each(submitted.folder, made.leases, submitted.tickets)
        assert_nothing_runs(submitted.folder)
        close = ("close", submitted.folder.root, *made.words())
        assert run_until_killed(ARRIVED, made.leases, *close, **scratch)
        made.run(*close)
        evidence = next((submitted.repo.root / "evidence").rglob("index.json")).parent
        assert "every check passed" in made.run("audit", evidence)
        wait_for(lambda: not holders(made.leases), "the end of every lease")
        # Records that nobody was there for are kept, and count for nothing.
        with open_store(submitted.folder.database, read_only=True) as store:
            unfinished = {name for name, _ in store.experiments.unfinished()}
            late = {record.experiment_id for record in store.experiments.duplicates()}
        assert late <= unfinished
        assert {"ticket", "close"} == {"close" if name.startswith("step") else "ticket" for name in late}
        left = [*open_folder.glob("roundkit-*"), *submitted.folder.store.glob("tmp*")]
        assert left == []


def kill_in_flight(made: Cluster, submitted: Scene, *words: str | Path) -> None:
    """Kill a serve while a worker runs a ticket's trials."""
    serve = made.start(*words)
    wait_for(lambda: measuring(submitted) and holders(made.leases), "a ticket's trials at a worker")
    made.kill(serve)


def measuring(submitted: Scene) -> bool:
    if not store_exists(submitted.folder.database):
        return False
    with open_store(submitted.folder.database, read_only=True) as store:
        return bool(store.tickets.all("measuring"))
