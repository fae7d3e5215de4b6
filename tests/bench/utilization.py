"""How much of the time devices are held, and how much of it they run trials, while tickets wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.result import Figure, environment
from support.program import BENCH
from support.synthetic import campaign_repo, knob, reachable_folder, scripted_lane

from roundkit.host.devices.fixture import FIXTURE_VARIABLE
from roundkit.host.lease import LEASE_ROOT_VARIABLE
from roundkit.models.experiment import ExperimentRecord
from roundkit.rounds.serve import serve
from roundkit.store import open_store

TARGET_PERCENT = 97.0
SETS = ("north", "south")
Interval = tuple[float, float]


def measure(tiny: bool) -> Iterator[Figure]:
    """Yield both shares over the time in which every device set had a ticket to go on with."""
    sleep_s, tickets = (0.05, 4) if tiny else (1.0, 6)
    with reachable_folder() as home:
        records = _serve(home, sleep_s, tickets)
    window = backlog(records)
    seconds = (window[1] - window[0]) * len(SETS)
    held = sum(overlap(lease_of(record), window) for record in records)
    running = sum(
        overlap((_s(trial.started_utc), _s(trial.ended_utc)), window)
        for record in records
        for trial in record.trials
    )
    detail = {"tickets": tickets, "trial_sleep_s": sleep_s, "window_s": window[1] - window[0]}
    yield Figure(
        "lease-held", f"device sets held by a lease, with a backlog, trials of {sleep_s:g} s",
        100 * held / seconds, "%", TARGET_PERCENT, "higher", detail,
    )  # fmt: skip
    yield Figure(
        "running", f"device sets running a trial, with a backlog, trials of {sleep_s:g} s",
        100 * running / seconds, "%", TARGET_PERCENT, "higher", detail,
    )  # fmt: skip


def backlog(records: Sequence[ExperimentRecord]) -> Interval:
    """Return from when on every set was measuring, and when the first had nothing more to measure."""
    leases: dict[str, list[Interval]] = {}
    for record in records:
        assert record.lease is not None
        leases.setdefault(record.lease.device_set, []).append(lease_of(record))
    assert sorted(leases) == sorted(SETS)
    start = max(min(start for start, _ in intervals) for intervals in leases.values())
    return start, min(max(end for _, end in intervals) for intervals in leases.values())


def lease_of(record: ExperimentRecord) -> Interval:
    """Return when an experiment held its devices."""
    assert record.lease is not None
    return _s(record.lease.acquired_utc), _s(record.lease.released_utc)


def overlap(interval: Interval, window: Interval) -> float:
    """Return how long an interval lies in a window."""
    return max(0.0, min(interval[1], window[1]) - max(interval[0], window[0]))


def _s(time: datetime) -> float:
    return time.timestamp()


def _serve(home: Path, sleep_s: float, tickets: int) -> list[ExperimentRecord]:
    """Serve real tickets on two fixture device sets and return the tickets' experiments."""
    lanes = [f"L{number}" for number in range(1, tickets + 1)]
    devices = home / "devices"
    devices.mkdir()
    for name in SETS:
        (devices / f"{name}.json").write_text("{}")
    slow = BENCH.replace(
        "    knobs = load_knobs()\n", f"    time.sleep({sleep_s})\n    knobs = load_knobs()\n"
    )
    repo = campaign_repo(
        home, lanes, files={"bench/bench.py": slow},
        device_sets=[{"id": name, "platform": "fixture", "devices": [name]} for name in SETS],
    )  # fmt: skip
    repo.edit_round(_without_later_checks)
    with environment({FIXTURE_VARIABLE: str(devices), LEASE_ROOT_VARIABLE: str(home / "leases")}):
        folder, _ = repo.launched(home / "round")
        for lane in lanes:
            scripted_lane(folder.clone(lane), {f"knobs/{lane}.json": knob(0.5)})
        outcome = serve(folder, until="idle", report=lambda _: None)
        assert (outcome.ended, outcome.measured) == ("idle", tickets), outcome
        with open_store(folder.database, read_only=True) as store:
            return [record for record in store.experiments.records() if record.purpose == "ticket"]


def _without_later_checks(draft: Any) -> None:
    """Leave the first A/A check alone: how often the machine is checked is the owner's choice."""
    draft["aa_interval"] = 1_000_000
