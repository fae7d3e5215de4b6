"""What serve asks the store in every turn of its loop: the right answers, and no dearer with more tickets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import now_utc
from roundkit.models.lane import Manifest
from roundkit.models.ledger import RejectedSubmission
from roundkit.models.measurement import VerdictRecord
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


def test_the_oldest_queued_ticket_of_each_lane(store: RoundStore) -> None:
    add(store, "L1", 0, measured=True)
    first = [add(store, "L2", 1), add(store, "L1", 2)]
    second = add(store, "L2", 3)
    add(store, "L3", 4, rejected=True)

    def found(**options: object) -> list[str]:
        return [ticket.key for ticket in store.tickets.oldest_queued(LANES, **options)]  # type: ignore[arg-type]

    assert found() == [first[1], first[0]]
    assert found(but_not=[first[0]]) == [first[1], second]
    assert found(among=[second]) == [second]
    assert found(among=[second], but_not=[second]) == []
    assert found(among=[]) == []
    assert store.tickets.oldest_queued([]) == []


def test_unseen_entries_are_neither_tickets_nor_rejected(store: RoundStore) -> None:
    known = add(store, "L1", 0)
    store.tickets.add_rejected_submission(
        RejectedSubmission(lane="L1", entry="bad\\xff", cause="malformed", detail="", intake_utc=now_utc())
    )
    entries = ["zz", known, "bad\\xff", "a'b"]
    assert store.tickets.unseen("L1", entries) == ["zz", "a'b"]
    assert store.tickets.unseen("L2", entries) == ["zz", "bad\\xff", "a'b"]
    assert store.tickets.unseen("L1", []) == []


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
    "oldest_queued": lambda store: store.tickets.oldest_queued(LANES, but_not=["0" * 64]),
    "unseen": lambda store: store.tickets.unseen("L1", ["0" * 64, "1" * 64]),
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
