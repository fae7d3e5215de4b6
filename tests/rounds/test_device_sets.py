"""R08: eight lanes on three device sets. Real leases, real processes; what is checked is on record."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.killing import plain_repo
from support.synthetic import knob, reachable_folder, scripted_lane

from roundkit.audit import audit_round
from roundkit.core.errors import Refused
from roundkit.host.devices.fixture import FIXTURE_VARIABLE
from roundkit.host.lease import LEASE_ROOT_VARIABLE, acquire_set
from roundkit.measure.pool import LocalPool
from roundkit.models.experiment import ExperimentRecord
from roundkit.rounds.close import close
from roundkit.rounds.serve import serve
from roundkit.store import open_store

LANES = tuple(f"L{number}" for number in range(1, 9))
SETS = [{"id": f"set-{name}", "platform": "fixture", "devices": [name, f"{name}2"]} for name in "abc"]


@pytest.fixture(scope="module")
def measured() -> Iterator[list[ExperimentRecord]]:
    """L1 submits three candidates, every other lane one; returns the tickets' experiments in order."""
    with reachable_folder() as root, pytest.MonkeyPatch.context() as patch:
        devices = root / "devices"
        devices.mkdir()
        for name in "abc":
            (devices / f"{name}.json").write_text("{}")
            (devices / f"{name}2.json").write_text("{}")
        patch.setenv(LEASE_ROOT_VARIABLE, str(root / "leases"))
        patch.setenv(FIXTURE_VARIABLE, str(devices))
        repo = plain_repo(root / "s", LANES, device_sets=SETS)
        repo.edit_round(lambda draft: draft.update(aa_interval=100))
        folder, _ = repo.launched(root / "s/round")
        for value in (0.1, 0.2, 0.3):
            scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(value)})
        for lane in LANES[1:]:
            scripted_lane(folder.clone(lane), {f"knobs/{lane}.json": knob(0.3)})
        assert serve(folder, until="idle", report=lambda _line: None).measured == len(LANES) + 2
        with open_store(folder.database) as store:
            yield [record for record in store.experiments.records() if record.purpose == "ticket"]


def test_r08_tickets_are_measured_at_once_and_never_share_a_device_set(
    measured: list[ExperimentRecord],
) -> None:
    held = [record.lease for record in measured if record.lease is not None]
    assert len(held) == len(LANES) + 2
    for one, other in itertools.combinations(held, 2):
        apart = one.released_utc <= other.acquired_utc or other.released_utc <= one.acquired_utc
        assert apart or set(one.devices).isdisjoint(other.devices)
    at_once = max(
        sum(other.acquired_utc <= one.acquired_utc < other.released_utc for other in held) for one in held
    )
    assert at_once == len(SETS)


def test_no_lane_starves_behind_one_with_many_tickets(measured: list[ExperimentRecord]) -> None:
    order = [record.lane for record in measured]
    third = [position for position, lane in enumerate(order) if lane == "L1"][2]
    assert set(order[:third]) == set(LANES)


def test_composition_and_rerun_stay_on_the_device_class_of_their_tickets(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = open_folder / "devices"
    devices.mkdir()
    (open_folder / "leases").mkdir()
    for name in "xy":
        (devices / f"{name}.json").write_text("{}")
    monkeypatch.setenv(LEASE_ROOT_VARIABLE, str(open_folder / "leases"))
    monkeypatch.setenv(FIXTURE_VARIABLE, str(devices))
    sets = [
        {"id": name, "platform": "fixture", "devices": [name], "device_class": f"class-{name}"}
        for name in "xy"
    ]
    repo = plain_repo(open_folder / "s", ("L1", "L2"), device_sets=sets)
    repo.edit_round(lambda draft: draft["composition"].update(same_device_class=True))
    folder, _ = repo.launched(open_folder / "s/round")
    for lane, value in (("L1", 0.5), ("L2", 0.4)):
        scripted_lane(folder.clone(lane), {f"knobs/{lane}.json": knob(value)})
    with acquire_set(["fixture:x"], root=open_folder / "leases", purpose="other") as held:
        assert held is not None
        serve(folder, until="idle", report=lambda _line: None)
    closed = close(folder, report=lambda _line: None)
    with open_store(folder.database) as store:
        used = {record.subject: record.lease for record in store.experiments.records()}
    # Every ticket was measured on y, so everything after it was too, though x is free again and comes first.
    assert {lease.device_set for lease in used.values() if lease is not None} == {"y"}
    assert {"step-2-L2", "rerun"} <= used.keys()
    assert audit_round(closed.evidence).failures == ()


def test_a_plan_that_keeps_to_device_classes_names_them(open_folder: Path) -> None:
    repo = plain_repo(open_folder / "s", ("L1",))
    repo.edit_round(lambda draft: draft["composition"].update(same_device_class=True))
    with pytest.raises(Refused, match=r"no-device-class.*cpu0"):
        repo.freeze(open_folder / "s/round")


def test_a_core_of_another_machine_is_another_device(open_folder: Path) -> None:
    sets = [
        {"id": name, "machine": name, "platform": "cpu", "devices": ["4000"]} for name in ("alpha", "beta")
    ]
    repo = plain_repo(open_folder / "s", ("L1",), device_sets=sets)
    plan = repo.freeze(open_folder / "s/round")
    assert [one.machine for one in plan.device_sets] == ["alpha", "beta"]
    with closing(LocalPool(plan.device_sets, lease_root=open_folder)) as pool:
        assert pool.free_sets() == ()


def test_a_round_whose_sets_are_all_workers_own_is_not_measured_without_a_cluster(
    open_folder: Path, lease_root: Path
) -> None:
    sets = [{"id": name, "machine": name, "platform": "cpu", "devices": ["0"]} for name in ("alpha", "beta")]
    folder, _ = plain_repo(open_folder / "s", ["L1"], device_sets=sets).launched(open_folder / "s/round")
    scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.3)})
    # It would wait for ever for a set of this machine, since the plan has none.
    with pytest.raises(Refused, match=r"no-scheduler.*measures: alpha, beta"):
        serve(folder, until="idle", report=lambda _line: None)
    with open_store(folder.database) as store:
        assert store.experiments.records() == []
