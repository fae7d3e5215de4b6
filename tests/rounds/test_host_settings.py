"""Fault 26: a serve that is killed while a trial is pinned leaves every setting of the host as it was."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
from support.killing import assert_nothing_runs, plain_repo, start
from support.synthetic import knob, scripted_lane

from roundkit.host.confine.process import descendants
from roundkit.host.tuning import read_tuning
from roundkit.rounds.layout import read_plan

PLACES = (
    "/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage", "/proc/sys/kernel", "/proc/sys/vm",
    "/proc/irq",
)  # fmt: skip

COUNTERS = {"ns_last_pid", "msg_next_id", "sem_next_id", "shm_next_id", "nr", "perf_event_max_sample_rate"}
"""Files there that the kernel itself writes."""


def settings_files() -> Iterator[Path]:
    for place in PLACES:
        for folder, _, names in os.walk(place):
            for name in set(names) - COUNTERS:
                path = Path(folder) / name
                if path.is_file() and path.stat().st_mode & stat.S_IWUSR:
                    yield path


def settings() -> dict[str, str]:
    """Read everything about this machine's processors that somebody could have written."""
    found = {}
    for path in settings_files():
        try:
            found[str(path)] = path.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
    return found


def affinities() -> dict[int, list[int]]:
    """Return the processors of this process and of all that it descends from."""
    own = psutil.Process()
    return {process.pid: process.cpu_affinity() for process in (own, *own.parents())}


def a_pinned_process(serve: int, core: int) -> int | None:
    for pid in descendants(serve):
        with suppress(ProcessLookupError):
            if os.sched_getaffinity(pid) == {core}:
                return pid
    return None


def test_fault_26_a_serve_killed_while_pinned_leaves_the_host_as_it_was(open_folder: Path) -> None:
    repo = plain_repo(open_folder / "s", ["L1"])
    repo.edit_round(lambda draft: draft.update(cpu_pinning=True))
    folder, _ = repo.launched(open_folder / "s/round")
    scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.5)})
    leases = open_folder / "leases"
    core = int(read_plan(folder).device_sets[0].devices[0])
    first, again = settings(), settings()
    steady = {path for path in first if first[path] == again.get(path)}
    assert len(steady) > 50
    tuned = {
        fact.name: fact.found for fact in read_tuning([core]) if fact.name not in {"load", "swap in use"}
    }
    before = affinities()
    serve = start(leases, "serve", folder.root, "--until-idle")
    while a_pinned_process(serve.pid, core) is None:
        assert serve.poll() is None, serve.communicate()
        time.sleep(0.001)
    serve.kill()
    serve.communicate()
    assert_nothing_runs(folder)
    after = settings()
    assert {path: (first[path], after.get(path)) for path in steady if after.get(path) != first[path]} == {}
    now = {fact.name: fact.found for fact in read_tuning([core])}
    assert {name: now[name] for name in tuned} == tuned
    assert affinities() == before
