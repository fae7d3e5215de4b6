"""Records that come in late, and where experiments ran."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from measure.worlds import World, make_spec

from roundkit.measure.cluster.arrival import lost_record
from roundkit.models.cluster import WorkerState
from roundkit.models.experiment import ExperimentRecord, Lease
from roundkit.models.round_plan import DeviceSet
from roundkit.rounds.recording import record_late
from roundkit.store import RoundStore, open_store

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def record_of(folder: Path, name: str, machine: str | None) -> ExperimentRecord:
    (folder / name).mkdir()
    world = World(folder / name)
    device_set = DeviceSet(id="a", platform="fixture", devices=("a",))
    request = world.request(world.candidate({}), (device_set,), name=name)
    state = WorkerState(format="roundkit-worker/1", version="1", machine="M", machine_sha256=machine, sets=())
    return lost_record(request, state, NOW, "worker-lost", "gone")


def keep(store: RoundStore, record: ExperimentRecord) -> str:
    return record_late(store, record, make_spec(), record.round_id)


def test_a_late_record_that_nobody_asked_for_ends_nothing_and_is_not_kept(tmp_path: Path) -> None:
    asked, other = (record_of(tmp_path, name, None) for name in ("asked.1", "other.1"))
    with open_store(tmp_path / "round.db") as store:
        with store.transaction():
            store.experiments.begin("asked.1", "ticket", "asked", 1)
        assert "never asked for" in keep(store, other)
        elsewhere = asked.model_copy(update={"run_spec_sha256": "f" * 64})
        said = keep(store, elsewhere)
        assert "is of another round" in said
        assert elsewhere.digest() in said
        assert "kept as a duplicate" in keep(store, asked)
        assert "on record already" in keep(store, asked)
        assert [one.experiment_id for one in store.experiments.duplicates()] == ["asked.1"]
        assert [event.kind for event in store.events.all()] == ["late-record"]


def test_machine_and_device_set_are_told_without_reading_samples(tmp_path: Path) -> None:
    lease = Lease(device_set="a", devices=("a",), acquired_utc=NOW, released_utc=NOW, holder_pid=1)
    held = record_of(tmp_path, "held.1", "1" * 64).model_copy(update={"lease": lease})
    lost = record_of(tmp_path, "lost.1", None)
    with open_store(tmp_path / "round.db") as store:
        for attempt, record in enumerate((held, lost)):
            with store.transaction():
                store.experiments.begin(record.experiment_id, "aa", record.subject, attempt)
                store.experiments.finish(record)
        found = store.experiments.places(["held.1", "lost.1", "never.1"])
    assert found == {"held.1": ("1" * 64, "a"), "lost.1": (None, None)}
