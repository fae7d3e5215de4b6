"""Builds and agents run beside measurements: on other cores, so that they cannot slow one side of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.agent_rounds import agent_round
from support.killing import plain_repo
from support.program import BUILD
from support.synthetic import knob, scripted_lane

from roundkit.measure.free_cores import free_cores
from roundkit.models.round_plan import DeviceSet
from roundkit.rounds.serve import serve
from roundkit.store import open_store

CORES = sorted(os.sched_getaffinity(0))
SAY = "import os; print('cores:', sorted(os.sched_getaffinity(0)))"
TRY = f"import os\ntry:\n    os.sched_setaffinity(0, {CORES})\nexcept PermissionError:\n    pass\n{SAY}\n"

several = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")


def core_set(*cores: int) -> DeviceSet:
    return DeviceSet(id="set", platform="cpu", devices=tuple(map(str, cores)))


def measured_core() -> tuple[int, str]:
    """Return the core to measure on, and what a command that runs beside it says of its own."""
    free = free_cores([core_set(CORES[-1])], pinned=True)
    assert free is not None
    assert CORES[-1] not in free
    return CORES[-1], f"cores: {sorted(free)}"


@several
def test_c04_a_build_beside_a_measurement_has_no_core_of_it(open_folder: Path, lease_root: Path) -> None:
    core, said = measured_core()
    sets = [{"id": "cpu", "platform": "cpu", "devices": [str(core)]}]
    repo = plain_repo(open_folder / "s", ["L1"], device_sets=sets, files={"build.py": BUILD + TRY})
    repo.edit_round(lambda draft: draft.update(cpu_pinning=True))
    folder, _ = repo.launched(open_folder / "s/round")
    scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.3)})
    serve(folder, until="idle", report=lambda _line: None)

    with open_store(folder.database, read_only=True) as store:
        [ticket] = store.tickets.all()
    assert [log.tail.strip() for log in ticket.commands] == [said]


@several
def test_c04_an_agent_beside_a_measurement_has_no_core_of_it(open_folder: Path, lease_root: Path) -> None:
    core, said = measured_core()
    sets = [{"id": "cpu", "platform": "cpu", "devices": [str(core)]}]
    write = "open('.roundkit/scratch/cores', 'w').write(repr(sorted(os.sched_getaffinity(0))))"
    steps = [{"python": f"{TRY}{write}"}]
    made = agent_round(
        open_folder, {"L1": "claude"}, {"L1": [steps]}, plan={"cpu_pinning": True, "device_sets": sets}
    )
    made.drive()

    told = (made.folder.clone("L1") / ".roundkit/scratch/cores").read_text()
    assert f"cores: {told}" == said


def test_c04_where_no_core_is_left_or_trials_are_not_pinned_any_will_do() -> None:
    every = core_set(*CORES)
    assert free_cores([every], pinned=True) is None
    assert free_cores([core_set(CORES[-1])], pinned=False) is None
    assert free_cores([DeviceSet(id="gpu", platform="cuda", devices=("0",))], pinned=True) is None
