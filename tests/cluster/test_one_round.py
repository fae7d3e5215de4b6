"""K01: a round on a cluster of three workers decides as the local pool does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.cluster import cluster_apart, fixture_sets
from support.killing import assert_nothing_runs, assert_one_verdict_each, decisions, scene

from roundkit.models.ledger import RoundLedger
from roundkit.store import open_store

NAMES = ("a", "b", "c")


@pytest.mark.slow
def test_k01_three_workers_decide_a_round_as_the_local_pool_does(open_folder: Path) -> None:
    submitted = scene(open_folder / "s", {"L1": 0.5, "L2": 0.4, "L3": 0.001}, device_sets=fixture_sets(NAMES))
    submitted.take_in()
    submitted.keep()
    ledgers = []
    # Each of them in a network of its own, as on machines of their own.
    with cluster_apart(open_folder / "cluster", *NAMES) as made:
        made.declare(NAMES)
        for local in (True, False):
            if not local:
                submitted.put_back()
                for name in NAMES:
                    made.start_worker(name, fixture_sets([name]))
            pool = [] if local else made.words()
            made.run("serve", submitted.folder.root, "--until-idle", *pool)
            made.run("close", submitted.folder.root, *pool)
            with open_store(submitted.folder.database, read_only=True) as store:
                ledgers.append(RoundLedger.from_bytes(store.steps.get("ledger") or b"", place="ledger"))
                records = store.experiments.records()
        assert_one_verdict_each(submitted.folder, made.leases, submitted.tickets)
        assert_nothing_runs(submitted.folder)
        evidence = next((submitted.repo.root / "evidence").rglob("index.json")).parent
        assert "every check passed" in made.run("audit", evidence)
    assert {record.outcome for record in records} == {"complete"}
    assert len({record.lease.device_set for record in records if record.lease}) > 1
    assert _without_clocks(ledgers[1]) == _without_clocks(ledgers[0])


def _without_clocks(ledger: RoundLedger) -> str:
    """Return a round's decisions without how long its commands took."""
    return re.sub(r'"wall_s": ?[0-9.e-]+', "", str(decisions(ledger)))
