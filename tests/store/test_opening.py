"""A round's database, made by several at once."""

from __future__ import annotations

import threading
from pathlib import Path

from roundkit.store import open_store


def test_fault_33_lanes_that_make_the_same_database_at_once_all_get_it(tmp_path: Path) -> None:
    failed: list[Exception] = []

    def open_it(path: Path, together: threading.Barrier) -> None:
        together.wait()
        try:
            open_store(path).close()
        except Exception as error:
            failed.append(error)

    # On the code before, some three openings of a hundred failed at once: "database is locked".
    for number in range(40):
        together = threading.Barrier(4)
        threads = [
            threading.Thread(target=open_it, args=(tmp_path / f"{number}.db", together)) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []
