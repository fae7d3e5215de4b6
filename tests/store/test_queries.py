"""What serve asks the store in every turn of its loop: the right answers, and no dearer with more tickets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import now_utc
from roundkit.models.lane import Manifest
from roundkit.models.verdict import VerdictRecord
from roundkit.store import RoundStore, open_store

LANES = ("L1", "L2", "L3")
VERDICT = VerdictRecord(
    verdict="not-measured", reason="deadline", sentence="not-measured: deadline", pairs=0, gain=None,
    gain_unit=None, low=None, high=None, z=None, delta=None, standard_error=None, statistic=None,
    order_effect=None, order_standard_error=None, baseline_median=None, candidate_median=None,
    smallest_detectable_gain=None, forgeable=False,
)  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RoundStore]:
    with open_store(tmp_path / "round.sqlite3") as opened:
        yield opened


def add(store: RoundStore, lane: str, number: int, *, measured: bool = False, rejected: bool = False) -> str:
    key = digest_bytes(f"{lane} {number}".encode())
    row = {"path": f"{number}", "mode": None, "deleted": True, "sha256": None}
    manifest = Manifest.model_validate({"format": "roundkit-manifest/1", "lane": lane, "entries": (row,)})
    store.tickets.add(
        key=key, ticket=f"r-{lane}-{number}", manifest=manifest, intake_utc=now_utc(), provenance="person",
        reject_cause="scope" if rejected else None, reject_detail="outside" if rejected else None,
    )  # fmt: skip
    if measured:
        store.tickets.set_verdict(key, VERDICT, now_utc())
    return key


def test_the_queue_is_in_order_of_intake(store: RoundStore) -> None:
    add(store, "L1", 0, measured=True)
    first, second = add(store, "L2", 1), add(store, "L1", 2)
    add(store, "L3", 4, rejected=True)
    assert [(ticket.key, ticket.lane) for ticket in store.tickets.queue()] == [(first, "L2"), (second, "L1")]


def test_counts(store: RoundStore) -> None:
    for number in range(3):
        add(store, "L1", number, measured=number == 0, rejected=number == 1)
    add(store, "L2", 3)
    counts = store.tickets
    assert (counts.count(), counts.count(lane="L1"), counts.count(state="queued")) == (4, 3, 2)
    assert counts.count(lane="L1", state="rejected") == 1
    assert (counts.count_toward_cap("L1"), counts.count_toward_cap("L3")) == (3, 0)
    assert [ticket.state for ticket in counts.all()] == ["measured", "rejected", "queued", "queued"]
    assert len(counts.all("queued")) == 2


ASKED: dict[str, Callable[[RoundStore], object]] = {
    "records": lambda store: store.experiments.records("r-L1-0"),
    "find": lambda store: store.tickets.find("r-L1-0"),
    "attempts": lambda store: store.experiments.attempts("r-L1-0"),
}


@pytest.mark.parametrize("name", ASKED)
def test_fault_23_a_question_costs_the_same_with_many_tickets(name: str, store: RoundStore) -> None:
    few = _steps_after(store, 20, ASKED[name])
    assert _steps_after(store, 600, ASKED[name]) <= few + 20


def _steps_after(store: RoundStore, total: int, ask: Callable[[RoundStore], object]) -> int:
    """Fill the store up to so many tickets and return how many steps of the database's machine it takes."""
    with store.transaction():
        for number in range(store.tickets.count(), total):
            lane = LANES[number % len(LANES)]
            add(store, lane, number, measured=number >= len(LANES) and number % 2 == 0)
            store.experiments.begin(f"e{number}", "ticket", f"r-{lane}-{number}", 1)
    connection = store.tickets._connection
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.set_progress_handler(count, 1)
    try:
        ask(store)
    finally:
        connection.set_progress_handler(None, 0)
    return steps
