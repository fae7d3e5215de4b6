"""Whole experiments: leased, on fresh copies, stopped at the first trial that broke, recorded."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from measure.worlds import VALIDATOR, World, make_spec

from roundkit.core.files import tree_digest
from roundkit.host.devices import machine_sha256
from roundkit.host.lease import acquire_set, holders, lease_file
from roundkit.measure.broke import DeviceBusy
from roundkit.measure.experiment import run_experiment
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.measurement import LookPlan, MeasurementRequest, PlaceNoise, SessionNoise
from roundkit.models.round_plan import DeviceSet
from roundkit.models.trial import Trial

Declare = Callable[..., DeviceSet]
HONEST = "def work(payload):\n    return sum(range(payload['n']))\n"


def test_six_pairs_are_run_as_scheduled_and_recorded(
    world: World, lease_root: Path, fixture_devices: Declare
) -> None:
    world.spec = make_spec(validator=VALIDATOR)
    candidate = world.candidate({"prog/core.py": HONEST + "# another comment\n"})
    request = world.request(candidate, (fixture_devices("a"),))
    told: list[tuple[int, int]] = []
    record = run_experiment(
        request, lease_root=lease_root, progress=lambda done, planned, trial: told.append((done, planned))
    )
    assert (record.outcome, record.reason, record.detail) == ("complete", None, None)
    assert [trial.planned for trial in record.trials] == list(request.schedule)
    assert len(record.trials) == 14
    assert all(trial.validated for trial in record.trials)
    assert told == [(n, 14) for n in range(1, 15)]
    for side, reference in ((record.baseline, request.baseline), (record.candidate, request.candidate)):
        assert side.files_sha256_before == side.files_sha256_after == reference.built_sha256
    assert record.lease is not None
    assert (record.lease.device_set, record.lease.holder_pid) == ("a", os.getpid())
    assert record.lease.acquired_utc <= record.trials[0].started_utc
    assert record.trials[-1].ended_utc <= record.lease.released_utc
    assert [reading.identity for reading in record.devices_before] == ["a"]
    assert [reading.problem for reading in record.devices_after] == [None]
    assert holders(lease_root) == []
    assert not Path(request.work_folder).exists()
    assert ExperimentRecord.from_bytes(record.to_bytes(), place="record") == record
    assert pickle.loads(pickle.dumps(record)) == record
    assert pickle.loads(pickle.dumps(request)) == request
    assert MeasurementRequest.from_bytes(request.to_bytes(), place="request") == request


def test_trials_are_pinned_to_the_cores_of_their_device_set(world: World, lease_root: Path) -> None:
    core = min(os.sched_getaffinity(0))
    world.spec = make_spec(pin_cpus=True)
    cores = DeviceSet(id="cores", platform="cpu", devices=(str(core),))
    request = world.request(world.candidate({}), (cores,))
    request = request.model_copy(update={"schedule": request.schedule[:2]})
    record = run_experiment(request, lease_root=lease_root)
    assert record.outcome == "complete", record.detail
    assert {run.boundary for trial in record.trials for run in trial.executions.values()} == set(
        record.boundaries
    )
    assert all(boundary.cpus == (core,) for boundary in record.boundaries.values())


def test_fresh_copies_are_made_for_each_pair(
    world: World, lease_root: Path, fixture_devices: Declare
) -> None:
    request = world.request(world.candidate({}), (fixture_devices("a"),))
    request = request.model_copy(update={"schedule": request.schedule[2:10]})
    work = Path(request.work_folder)
    inodes: dict[int | None, set[tuple[int, ...]]] = {}

    def look(done: int, total: int, trial: Trial) -> None:
        sides = sorted(work.glob("files-*/prog/core.py"))
        assert len(sides) == 2
        changed = tuple(sorted(path.stat().st_ctime_ns for path in sides))
        inodes.setdefault(trial.planned.pair, set()).add(changed)
        assert len(str(sides[0])) == len(str(sides[1]))

    record = run_experiment(request, lease_root=lease_root, progress=look)
    assert record.outcome == "complete", record.detail
    assert [len(seen) for seen in inodes.values()] == [1, 1, 1, 1]
    assert len(set().union(*inodes.values())) == 4


def test_the_side_that_runs_first_is_copied_first(
    world: World, lease_root: Path, fixture_devices: Declare
) -> None:
    """The side that was always copied last would find its files in the caches in both orders."""
    mark = "# the candidate's\n"
    candidate = world.candidate({"a/large": os.urandom(10 << 20).hex(), "prog/core.py": HONEST + mark})
    request = world.request(candidate, (fixture_devices("a"),))
    request = request.model_copy(update={"schedule": request.schedule[2:10]})
    made: dict[int, tuple[str, dict[str, int]]] = {}

    def look(done: int, total: int, trial: Trial) -> None:
        copies = Path(request.work_folder).glob("files-*/prog/core.py")
        sides = {
            "candidate" if mark in path.read_text() else "baseline": path.stat().st_ctime_ns
            for path in copies
        }
        assert trial.planned.pair is not None
        made.setdefault(trial.planned.pair, (trial.planned.side, sides))

    assert run_experiment(request, lease_root=lease_root, progress=look).outcome == "complete"
    assert [first for first, _ in made.values()].count("candidate") == 2
    for first, times in made.values():
        assert len(times) == 2
        assert times[first] == min(times.values())


def test_c02_no_mount_tells_a_command_its_side_its_pair_or_what_it_is_measured_for(
    world: World, lease_root: Path, fixture_devices: Declare
) -> None:
    telling = (
        "import os, sys\nsys.stderr.write(open('/proc/self/mountinfo').read() + str(os.environ) + '|')\n"
    )
    candidate = world.candidate({"prog/core.py": telling + HONEST})
    request = world.request(candidate, (fixture_devices("a"),), name="r01-L1-77777777.1")
    request = request.model_copy(
        update={
            "baseline": request.candidate,
            "schedule": request.schedule[2:10],
            "work_folder": str(world.root / "0123456789abcdef"),
        }
    )
    record = run_experiment(request, lease_root=lease_root)
    assert record.outcome == "complete", record.detail
    told = [trial.executions["worker"].stderr_tail for trial in record.trials]
    assert all("/proc" in text and "files-" in text for text in told)
    words = ("L1", "side", "trial-", "baseline", "candidate")
    assert [word for word in words if any(word in text for text in told)] == []
    # Numbers of mounts, devices and users differ from start to start, names of folders by chance.
    assert len({re.sub(r"files-\d{12}|\d+ \d+ \d+:\d+|'\d+'|[ug]id=\d+", "N", text) for text in told}) == 1
    assert len(set(told)) == len(told)


@pytest.mark.parametrize(("boundary", "pairs"), [(-50.0, 4), (50.0, 6)], ids=["at-once", "never"])
def test_m04_an_experiment_ends_at_the_look_that_stops_it(
    world: World, lease_root: Path, fixture_devices: Declare, boundary: float, pairs: int
) -> None:
    plan = LookPlan(
        looks=(4, 6), boundaries=(boundary,) * 2, futility_power=None, futility_optimism=0.0
    )  # fmt: skip
    noise, rounds = (SessionNoise(checks=3, variance=variance) for variance in (0.0001, 0.0002))
    places = tuple(
        PlaceNoise(machine_sha256=machine, device_set=name, noise=noise if machine == own else rounds)
        for own in (machine_sha256(),)
        for machine in ("0" * 64, own)
        for name in ("a", "b")
    )
    request = world.request(world.candidate({}), (fixture_devices("a"),)).model_copy(
        update={"look_plan": plan, "session_noise": rounds, "place_noise": places}
    )
    record = run_experiment(request, lease_root=lease_root)
    assert (record.outcome, record.look_plan, record.session_noise) == ("complete", plan, noise)
    assert len({trial.planned.pair for trial in record.trials} - {None}) == pairs


def test_fault_15_r21_a_busy_device_leaves_the_request_unstarted(
    world: World, lease_root: Path, fixture_devices: Declare
) -> None:
    busy, free = fixture_devices("busy"), fixture_devices("free")
    candidate = world.candidate({})
    with acquire_set(["fixture:busy"], root=lease_root, purpose="another round") as held:
        assert held is not None
        with pytest.raises(DeviceBusy, match="busy"):
            run_experiment(world.request(candidate, (busy,)), lease_root=lease_root)
        request = world.request(candidate, (busy, free)).model_copy(
            update={"schedule": world.request(candidate, (free,)).schedule[:1]}
        )
        record = run_experiment(request, lease_root=lease_root)
        assert record.lease is not None
        assert record.lease.device_set == "free"


def test_fault_03_experiment_stops_at_the_first_trial_that_the_candidate_broke(
    world: World, lease_root: Path, fixture_devices: Declare
) -> None:
    broken = world.candidate({"prog/core.py": "import os\ndef work(payload):\n    os._exit(3)\n"})
    record = run_experiment(world.request(broken, (fixture_devices("a"),)), lease_root=lease_root)
    assert (record.outcome, record.reason) == ("candidate-broke", "candidate-crashed")
    assert "exit code 3" in (record.detail or "")
    assert [trial.problem for trial in record.trials] == [None, "candidate-crashed"]
    assert record.devices_after
    healthy = run_experiment(
        world.request(world.candidate({}, "next"), (fixture_devices("a"),), pairs=2, name="e.1"),
        lease_root=lease_root,
    )
    assert healthy.outcome == "complete"


def test_broken_baseline_is_told_apart_from_a_broken_candidate(
    world: World, lease_root: Path, fixture_devices: Declare
) -> None:
    (world.incumbent / "prog" / "core.py").write_text("raise SystemExit(4)\n")
    record = run_experiment(
        world.request(world.candidate({}), (fixture_devices("a"),)), lease_root=lease_root
    )
    assert (record.outcome, record.reason) == ("baseline-broke", "baseline-crashed")
    assert len(record.trials) == 1


def test_fault_27_unqualified_device_starts_no_trial(
    world: World, lease_root: Path, fixture_devices: Declare
) -> None:
    candidate = world.candidate({})
    hot = fixture_devices("hot", '{"problem": "at 95 degrees", "readings": {"temperature_c": 95.0}}')
    record = run_experiment(world.request(candidate, (hot,)), lease_root=lease_root)
    assert (record.outcome, record.reason) == ("infrastructure", "device-unqualified")
    assert record.detail == "at 95 degrees"
    assert record.trials == ()
    assert record.devices_before[0].readings == {"temperature_c": 95.0}
    absent = DeviceSet(id="absent", platform="cpu", devices=("100000",))
    record = run_experiment(world.request(candidate, (absent,), name="e.1"), lease_root=lease_root)
    assert (record.outcome, record.reason) == ("infrastructure", "device-unqualified")
    assert "100000" in (record.detail or "")


def test_device_that_drifted_during_the_experiment_spoils_it(
    world: World, lease_root: Path, fixture_devices: Declare
) -> None:
    drifting = fixture_devices("a", '{"problem_after": "clock fell from 2.0 to 1.2 GHz"}')
    record = run_experiment(world.request(world.candidate({}), (drifting,), pairs=2), lease_root=lease_root)
    assert (record.outcome, record.reason) == ("infrastructure", "device-drift")
    assert record.devices_after[0].problem == record.detail
    crashing = world.candidate({"prog/core.py": "raise SystemExit(4)\n"}, "crashing")
    record = run_experiment(world.request(crashing, (drifting,), name="e.1"), lease_root=lease_root)
    assert record.reason == "candidate-crashed", "drift is no second chance for a candidate that crashed"


def test_m11_lost_lease_and_changed_checkout_are_infrastructure(
    world: World, lease_root: Path, fixture_devices: Declare
) -> None:
    candidate, device = world.candidate({}), fixture_devices("a")
    record = run_experiment(
        world.request(candidate, (device,)),
        lease_root=lease_root,
        progress=lambda done, total, trial: lease_file(lease_root, "fixture:a").unlink(missing_ok=True),
    )
    assert (record.outcome, record.reason) == ("infrastructure", "lease-lost")
    assert record.baseline.files_sha256_after is None
    request = world.request(candidate, (device,), name="e.1")
    (candidate / "prog" / "core.py").write_text(HONEST + "# slipped in later\n")
    record = run_experiment(request, lease_root=lease_root)
    assert (record.outcome, record.reason) == ("infrastructure", "checkout-changed")
    assert record.candidate.files_sha256_before == tree_digest(candidate)


def test_m11_confinement_that_is_missing_is_infrastructure(
    world: World, lease_root: Path, fixture_devices: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUNDKIT_BWRAP", "/no/such/bwrap")
    record = run_experiment(
        world.request(world.candidate({}), (fixture_devices("a"),)), lease_root=lease_root
    )
    assert (record.outcome, record.reason) == ("infrastructure", "bwrap-missing")


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to mount a small file system")
def test_m11_full_disk_is_infrastructure(world: World, lease_root: Path, fixture_devices: Declare) -> None:
    small = world.root / "work"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=711", "none", str(small)], check=True)
    try:
        candidate = world.candidate({"prog/table.py": "X" * 400_000})
        record = run_experiment(world.request(candidate, (fixture_devices("a"),)), lease_root=lease_root)
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert (record.outcome, record.reason) == ("infrastructure", "disk-full")


def test_m04_experiment_stopped_by_hand_keeps_what_it_has(
    world: World, lease_root: Path, fixture_devices: Declare
) -> None:
    done: list[int] = []
    record = run_experiment(
        world.request(world.candidate({}), (fixture_devices("a"),)),
        lease_root=lease_root,
        progress=lambda number, total, trial: done.append(number),
        should_stop=lambda: len(done) == 3,
    )
    assert (record.outcome, record.reason) == ("infrastructure", "interrupted")
    assert len(record.trials) == 3
    assert holders(lease_root) == []


def test_fault_09_m09_one_process_that_reports_less_but_ends_no_sooner_is_caught(
    single_world: World, lease_root: Path, fixture_devices: Declare
) -> None:
    # So much slower, and claiming to be so much faster, that no noise of this machine comes near it.
    slow = HONEST.replace("    return", "    for _ in range(500): sum(range(20_000))\n    return")
    forging = "import time\nreal = time.perf_counter\ntime.perf_counter = lambda: real() / 1_000_000\n" + slow
    request = single_world.request(single_world.candidate({"prog/core.py": forging}), (fixture_devices("a"),))
    record = run_experiment(request, lease_root=lease_root)
    assert (record.outcome, record.reason) == ("candidate-broke", "candidate-clock"), record.detail
    assert "does not end sooner" in (record.detail or "")
    assert all(trial.problem is None for trial in record.trials)
