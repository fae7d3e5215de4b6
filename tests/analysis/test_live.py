"""N08: a round read while serve writes it: consistent, and nobody waits for a lock."""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl
import pytest
from support.killing import run_to_end, scene, start

from roundkit.analysis import load
from roundkit.store import store_exists


def test_n08_a_live_round_is_read_while_serve_writes(open_folder: Path) -> None:
    live = scene(open_folder / "s", {"L1": 0.5, "L2": 0.4})
    serve = start(live.leases, "serve", live.folder.root, "--until-idle")
    seen: list[tuple[int, int]] = []
    while serve.poll() is None:
        time.sleep(0.05)
        if not store_exists(live.folder.database):
            continue
        ledgers = load(live.folder.root)
        tickets, trials = ledgers.tickets.collect(), ledgers.trials.collect()
        measured = tickets.filter(pl.col("state") == "measured")
        # One copy at one moment: whatever has a verdict has its trials, in every frame.
        assert set(measured["ticket"]) <= set(trials["subject"])
        assert set(ledgers.devices.collect()["experiment"]) == set(trials["experiment"])
        assert ledgers.rounds.collect()["tickets"].to_list() == [tickets.height]
        seen.append((tickets.height, trials.height))
    assert serve.returncode == 0, serve.communicate()
    assert len(seen) > 3
    assert seen == sorted(seen)
    assert set(load(live.folder.root).tickets.collect()["state"]) == {"measured"}


@pytest.mark.slow
def test_a_round_directory_is_read_from_its_evidence_once_it_is_closed(open_folder: Path) -> None:
    live = scene(open_folder / "s", {"L1": 0.5})
    run_to_end(live.leases, "serve", live.folder.root, "--until-idle")
    run_to_end(live.leases, "close", live.folder.root)
    rounds = load(live.folder.root).rounds.collect()
    assert rounds["state"].to_list() == ["closed"]
    assert rounds["evidence_digest"].null_count() == 0
