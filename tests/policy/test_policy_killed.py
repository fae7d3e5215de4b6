"""P03 and P11: whatever moment `pilot run` dies at, its slot is free or used, and the folder audits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.killing import environment
from support.small_disk import fill, mounted_disk

from roundkit.audit.policy import audit_policy
from roundkit.audit.policy_material import read_policy
from roundkit.core.errors import Refused
from roundkit.pilots.policy import run as policy_run
from roundkit.pilots.policy.folder import open_policy
from roundkit.pilots.policy.one_round import RunStopped
from roundkit.pilots.policy.prepare import prepare_policy
from roundkit.pilots.policy.run import run_policy
from roundkit.pilots.policy.workplace import Workplace

from .conftest import SmallPilot

RUN, ROUND, PLACE = (f"roundkit.pilots.policy.{name}" for name in ("run", "one_round", "workplace"))
EARLY = (
    (PLACE, "Workplace.make", "aborted"),
    (PLACE, "Workplace.freeze_round", "aborted"),
    (RUN, "_note_launch", "aborted"),
    (ROUND, "launch", "aborted"),
)
LATE = (
    (ROUND, "drive_lanes", "aborted"),
    (ROUND, "close", "aborted"),
    (ROUND, "_kept", "aborted"),
    (RUN, "_write_end", "aborted"),
    (RUN, "_end_work", "completed"),
    (RUN, "_write_record", "completed"),
    (RUN, "_decide", "completed"),
)


def killed(folder: Path, module: str, function: str, run: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "support.killed_pilot", module, function, folder, run],
        env=environment(Path(os.environ["ROUNDKIT_LEASE_ROOT"])), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr


def survives(pilot: SmallPilot, stages: tuple[tuple[str, str, str], ...]) -> None:
    """Kill one run at each stage, and see what the next start makes of it."""
    plan = pilot.prepare()
    # Killed before its start is there, a slot is free.
    killed(pilot.folder, RUN, "write_new", plan.schedule[0].run_id)
    for (module, function, _), slot in zip(stages, plan.schedule, strict=False):
        killed(pilot.folder, module, function, slot.run_id)
        with pytest.raises(Refused, match="slot-used"):
            run_policy(pilot.folder, only=slot.run_id, report=print)
    folder = open_policy(pilot.folder)
    used = plan.schedule[: len(stages)]
    records = [folder.record(slot) for slot in used]
    assert [record and record.process for record in records] == [process for *_, process in stages]
    assert not folder.work.exists()
    assert folder.chain().order == tuple(slot.run_id for slot in used)
    missing = {check.where for check in audit_policy(pilot.folder).failures}
    left = {f"runs/{slot.order:02d}-{slot.run_id}" for slot in plan.schedule[len(stages) :]}
    assert missing == left
    assert [run.slot for run in read_policy(pilot.folder).runs] == list(used)


@pytest.mark.slow
def test_p03_a_run_killed_before_its_agents_is_aborted_and_the_folder_audits(small_pilot: SmallPilot) -> None:
    survives(small_pilot, EARLY)


@pytest.mark.parametrize("stage", ["Workplace.make", "_note_launch", "_write_end"])
def test_p03_a_full_disk_loses_no_record_and_the_next_start_goes_on(
    small_pilot: SmallPilot, open_folder: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    owner = Workplace if "." in stage else policy_run
    name = stage.rpartition(".")[2]
    real, fillers = getattr(owner, name), []

    def full(*given: Any) -> Any:
        if not fillers:
            fillers.append(fill(disk))
        return real(*given)

    with mounted_disk(open_folder, 64) as disk:
        folder = disk / "pilot"
        plan = prepare_policy(small_pilot.pilot_file, folder)
        if stage == "_write_end":
            monkeypatch.setattr(Workplace, "freeze_round", _stopped)
        monkeypatch.setattr(owner, name, full)
        with pytest.raises(OSError, match="No space left"):
            run_policy(folder, report=print)
        fillers[0].unlink()
        monkeypatch.undo()
        with pytest.raises(Refused, match="slot-used"):
            run_policy(folder, only=plan.schedule[0].run_id, report=print)
        record = open_policy(folder).record(plan.schedule[0])
        assert record is not None
        assert record.process == "aborted"
        assert {check.name for check in audit_policy(folder).failures} == {"matrix"}


def _stopped(*_: object) -> None:
    raise RunStopped("a test stops it")


@pytest.mark.slow
def test_p03_a_run_killed_at_any_stage_keeps_what_it_had_and_the_folder_audits(
    small_pilot: SmallPilot,
) -> None:
    small_pilot.edit("pilot.yaml", lambda draft: draft.update(repetitions=6))
    survives(small_pilot, (*EARLY, *LATE))
