"""P11: real rounds of both arms on the synthetic program, and what a killed or broken run leaves."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from statistics import median

import psutil
import pytest
from support.processes import ended_with_test

from roundkit.audit.policy import audit_policy
from roundkit.audit.policy_material import read_policy
from roundkit.core.clock import format_utc
from roundkit.core.errors import Refused
from roundkit.core.yamlfile import dump_yaml, load_yaml
from roundkit.models.policy_run import PolicyRunRecord
from roundkit.pilots.policy.folder import open_policy
from roundkit.pilots.policy.kind import status
from roundkit.pilots.policy.one_round import LaneNotDriven, run_round
from roundkit.pilots.policy.run import _use_slot, run_policy
from roundkit.pilots.policy.workplace import Workplace
from roundkit.rounds.prepare import freeze
from roundkit.rules.clock_pairs import no_durations
from roundkit.rules.policy_bound import measurement_queue_bound
from roundkit.rules.policy_workload import measured_workload

from .conftest import SmallPilot

_PATIENCE_S = 120.0


def _quiet(_line: str) -> None:
    pass


def test_p11_one_round_of_s_is_launched_driven_served_and_closed(small_pilot: SmallPilot) -> None:
    plan = small_pilot.prepare()
    assert run_policy(small_pilot.folder, only="S.1", report=_quiet) is None
    pilot = open_policy(small_pilot.folder)
    [slot] = [slot for slot in plan.schedule if slot.run_id == "S.1"]
    record = pilot.record(slot)
    assert record is not None
    assert (record.process, record.end, record.censored) == ("completed", "target", False)
    assert record.provenances == ("scripted",)
    [round_] = record.rounds
    assert round_.lanes == ("L1",)
    assert record.final_gain == round_.gain == pytest.approx(18 / 130, abs=0.01)
    assert record.target_s == round_.elapsed_s
    assert record.charged.wall_s == 120
    assert record.tokens is None
    assert record.micro_usd is None
    assert record.experiments == {"aa": 1, "rerun": 1, "ticket": 1}
    assert [wait.lane for wait in record.waits] == ["L1"]
    [view] = read_policy(small_pilot.folder).runs[0].views()
    accepted = next(each for each in view.experiments if each.purpose == "rerun")
    assert record.launched_utc is not None
    assert record.launched_utc + timedelta(seconds=record.target_s or 0) == accepted.ended_utc
    _has_both_clocks(small_pilot.folder, record)
    bound = measurement_queue_bound(view)
    assert bound.tickets == 1
    assert 0 < bound.total_s < (record.wall_s or 0)
    assert not pilot.work.exists()
    _fails_for_missing_runs_alone(small_pilot.folder, plan.repetitions * 2 - 1)


def _has_both_clocks(folder: Path, record: PolicyRunRecord) -> None:
    """Check that launch, end and experiments were read on both clocks, and that the record binds the rest."""
    [run] = read_policy(folder).runs
    assert run.launch is not None
    assert run.end is not None
    [view] = run.views()
    pairs = [run.launch.clock, *(each.ended_clock for each in view.experiments), run.end.clock]
    assert None not in pairs
    assert no_durations(pairs) is None
    assert record.format == "roundkit-policy-run/2"
    assert [file.path for file in record.files or ()] == ["end.json", "launch.json", "start.json"]
    started = folder / run.folder / "start.json"
    whole = started.read_bytes()
    moved = whole.replace(
        format_utc(run.start.started_utc).encode() if run.start else b"", b"2026-01-01T00:00:00.000000Z"
    )
    started.write_bytes(moved)
    assert "runs" in {check.name for check in audit_policy(folder).failures}
    started.write_bytes(whole)


@pytest.mark.slow
def test_p11_a_killed_run_is_kept_as_aborted_and_its_slot_stays_used(
    small_pilot: SmallPilot, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_pilot.play({"every run": {"L1": [{"work_s": 600.0}]}})
    small_pilot.prepare()
    folder = small_pilot.folder
    argv = [sys.executable, "-m", "roundkit", "pilot", "run", str(folder), "--only", "S.1"]
    runner = ended_with_test(
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    )
    assert runner.stdout is not None
    for line in runner.stdout:
        if "attempt 1 started" in line:
            break
    serving = _wait(lambda: _serving(folder))
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    assert [process.is_running() for process in serving] == [True]
    with pytest.raises(Refused, match="slot-used"):
        run_policy(folder, only="S.1", report=_quiet)
    assert _serving(folder) == []
    [run] = read_policy(folder).runs
    assert run.record is not None
    assert (run.record.process, run.record.end, run.record.censored) == ("aborted", None, False)
    assert run.record.final_gain is None
    assert (folder / run.folder / "broken/S1-r01/round.sqlite3").is_file()
    assert not (folder / run.folder / "broken/S1-r01/secret").exists()
    assert not (folder / "running").exists()
    _fails_for_missing_runs_alone(folder, 5)


@pytest.mark.slow
def test_p11_a_run_whose_agent_cannot_start_is_kept_as_broken_and_stops_the_pilot(
    small_pilot: SmallPilot,
) -> None:
    gone = small_pilot.root / "agent-program"
    shutil.copy("/usr/bin/true", gone)
    small_pilot.edit(
        "round.yaml", lambda d: [lane["agent"].update(executable=str(gone)) for lane in d["lanes"]]
    )
    small_pilot.prepare()
    gone.unlink()
    assert run_policy(small_pilot.folder, report=_quiet) is None
    [run] = read_policy(small_pilot.folder).runs
    assert run.record is not None
    assert run.record.process == "error"
    assert "program-missing" in run.record.detail
    assert not run.record.censored


@pytest.mark.slow
def test_p11_a_lane_that_nobody_was_started_for_breaks_its_run_instead_of_endless_rounds(
    small_pilot: SmallPilot,
) -> None:
    # An earlier release froze such a pilot: its rounds were empty, charged nothing, and never ended.
    plan = small_pilot.prepare()
    slot = plan.schedule[0]
    work = Workplace(open_policy(small_pilot.folder), slot)
    work.make()
    round_file = work.root / "round.yaml"
    shutil.copy(small_pilot.root / "round.yaml", round_file)
    draft = load_yaml(round_file.read_bytes(), place="round.yaml")
    draft["lanes"][0].update(harness="swarmflow")
    round_file.write_bytes(dump_yaml(draft))
    folder = work.round_folder(1)
    freeze(work.campaign_file, round_file, folder.root)
    kept = open_policy(small_pilot.folder).rounds(slot)
    with pytest.raises(LaneNotDriven, match="lane L1 has no attempt: its harness swarmflow"):
        run_round(folder, kept, _quiet)
    assert not kept.exists()


@pytest.mark.slow
def test_p11_p_against_s_decision_censoring_and_ranges_match_the_records(
    small_pilot: SmallPilot,
) -> None:
    # S never gets to L3 in its second run, so that it is censored there by its budget.
    small_pilot.play({
        "every run": {
            "L1": [{"work_s": 0.0, "value": 0.6}],
            "L2": [{"work_s": 0.0, "value": 0.5}],
            "L3": [{"work_s": 0.0, "value": 0.5}],
            "L4": [{"work_s": 0.0, "value": 0.0, "mode": "broken"}],
        },
        "S2": {"L3": [{"work_s": 0.0}]},
    })  # fmt: skip
    small_pilot.edit("pilot.yaml", lambda draft: draft.update(fraction=0.9))
    plan = small_pilot.prepare()
    decision = run_policy(small_pilot.folder, report=_quiet)
    assert decision is not None
    audit = audit_policy(small_pilot.folder, expect=decision.digest())
    assert audit.failures == ()
    material = read_policy(small_pilot.folder)
    assert [record.run_id for record in material.records] == [slot.run_id for slot in plan.schedule]
    by_run = {record.run_id: record for record in material.records}
    assert {name for name, record in by_run.items() if record.censored} == {"S.2"}
    assert by_run["S.2"].end == "budget"
    assert by_run["S.2"].charged == by_run["P.1"].charged
    for arm, gain in (("P", decision.p_final_gain), ("S", decision.s_final_gain)):
        gains = [record.final_gain or 0.0 for record in material.records if record.arm == arm]
        assert gain == median(gains)
        assert min(gains) <= gain <= max(gains)
    assert [(pair.p_s, pair.s_s) for pair in decision.pairs] == [
        (by_run[f"P.{number}"].target_s, by_run[f"S.{number}"].target_s) for number in (1, 2, 3)
    ]
    assert decision.pairs[1].winner == "P"
    assert decision.equal_arms_faster == 0.125
    views = [view for run in material.runs for view in run.views()]
    work = measured_workload(plan, views)
    assert work is not None
    assert (work.lanes, work.device_sets) == (4, 2)
    parallel = next(run for run in material.runs if run.slot.run_id == "P.1")
    held = [each.lease for each in parallel.views()[0].experiments if each.lease is not None]
    assert {lease.device_set for lease in held} == {"core-a", "core-b"}
    assert by_run["P.1"].rejected == {"build": 1}


def _fails_for_missing_runs_alone(folder: Path, missing: int) -> None:
    failures = audit_policy(folder).failures
    assert {check.name for check in failures} == {"matrix"}
    assert len(failures) == missing
    assert all(check.detail.endswith("is missing") for check in failures)


def _serving(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "serve" in words and any(word.startswith(f"{folder}/") for word in words):
            found.append(process)
    return found


def _wait(ready: Callable[[], list[psutil.Process]]) -> list[psutil.Process]:
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        if found := ready():
            return found
        time.sleep(0.05)
    raise AssertionError("it never came")


def test_p11_a_pilot_is_run_by_one_process_at_a_time(small_pilot: SmallPilot) -> None:
    from roundkit.rounds.locks import hold_lock

    small_pilot.prepare()
    pilot = open_policy(small_pilot.folder)
    with (
        hold_lock(pilot.lock, code="pilot-running", what="a run of this pilot"),
        pytest.raises(Refused, match="pilot-running"),
    ):
        run_policy(small_pilot.folder, report=_quiet)


def test_p11_two_paths_to_one_folder_are_one_pilot(small_pilot: SmallPilot, tmp_path: Path) -> None:
    from roundkit.rounds.locks import hold_lock

    small_pilot.prepare()
    (tmp_path / "alias").symlink_to(small_pilot.folder)
    with (
        hold_lock(open_policy(small_pilot.folder).lock, code="pilot-running", what="a run of this pilot"),
        pytest.raises(Refused, match="pilot-running"),
    ):
        run_policy(tmp_path / "alias", report=_quiet)


@pytest.mark.parametrize("name", ["runs", "running"])
def test_p11_a_folder_that_leads_elsewhere_is_refused(small_pilot: SmallPilot, name: str) -> None:
    small_pilot.prepare()
    elsewhere = small_pilot.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("mine")
    shutil.rmtree(small_pilot.folder / name, ignore_errors=True)
    (small_pilot.folder / name).symlink_to(elsewhere)
    with pytest.raises(Refused, match="is a link"):
        run_policy(small_pilot.folder, report=_quiet)
    assert [path.name for path in elsewhere.iterdir()] == ["mine"]


def _begun(pilot: SmallPilot) -> Path:
    """Leave a run as a process that died right after its start leaves it."""
    plan = pilot.prepare()
    _use_slot(open_policy(pilot.folder), plan.schedule[0])
    return open_policy(pilot.folder).run(plan.schedule[0])


def test_p03_what_a_killed_writer_left_is_no_evidence(small_pilot: SmallPilot) -> None:
    run = _begun(small_pilot)
    parts = [run / ".end.json.0123456789ab.tmp", small_pilot.folder / ".decision.json.0123456789ab.tmp"]
    begun = run.parent / ".02-X.starting"
    begun.mkdir()
    for part in parts:
        part.write_bytes(b"{")
    with pytest.raises(Refused, match="slot-used"):
        run_policy(small_pilot.folder, only=run.name[3:], report=_quiet)
    assert not any(part.exists() for part in (*parts, begun))
    _fails_for_missing_runs_alone(small_pilot.folder, 5)


@pytest.mark.parametrize("name", ["start.json", "record.json", "end.json"])
@pytest.mark.parametrize("data", [b"", b"{", b"{}", b"\xff"])
def test_p03_a_record_that_is_none_is_refused_and_never_rewritten(
    small_pilot: SmallPilot, name: str, data: bytes
) -> None:
    run = _begun(small_pilot)
    (run / name).write_bytes(data)
    for start in (lambda: run_policy(small_pilot.folder, report=_quiet), lambda: status(small_pilot.folder)):
        with pytest.raises(Refused, match="malformed"):
            start()
        if name == "end.json":
            break  # a status does not read it
    assert (run / name).read_bytes() == data


def test_p03_what_holds_a_round_and_cannot_be_named_is_not_run_beside(small_pilot: SmallPilot) -> None:
    from roundkit.rounds.locks import hold_lock

    run = _begun(small_pilot)
    round_ = small_pilot.folder / "running" / run.name[3:] / "r01"
    (round_ / "store").mkdir(parents=True)
    (round_ / "round-plan.json").write_text("{}")
    lock = round_ / "store/serve.lock"
    with hold_lock(lock, code="serve-running", what="serve"):
        lock.with_suffix(".holder").write_text("[]")
        with pytest.raises(Refused, match="still-running"):
            run_policy(small_pilot.folder, report=_quiet)
    assert round_.exists()


def test_p11_an_unknown_run_is_refused_with_the_names(small_pilot: SmallPilot) -> None:
    small_pilot.prepare()
    with pytest.raises(Refused, match=r"unknown-run.*\n.*S\.3"):
        run_policy(small_pilot.folder, only="Q.1", report=_quiet)
