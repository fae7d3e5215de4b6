"""What the boundary costs: to start a command in it, and to compute in it."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from bench.result import Figure, ratio_interval
from support.synthetic import SYSTEM_PYTHON, reachable_folder

from roundkit.core.clock import Deadline
from roundkit.host.confine import Execution, Limits, Network, confined_execute
from roundkit.host.confine.backend import find_backend
from roundkit.host.confine.bwrap import ARGS_FD, SECCOMP_FD, STATUS_FD, Builder
from roundkit.host.confine.identity import take_identity
from roundkit.host.confine.ownership import lend
from roundkit.host.confine.places import open_places
from roundkit.host.confine.seccomp import filter_program
from roundkit.host.confine.spawn import memory_file, spawn

TARGET = 1.3
TARGET_INSIDE = 1.01
ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
LIMITS = Limits(
    output_bytes=1 << 16, output_kill_bytes=1 << 22, file_bytes=1 << 26, disk_bytes=1 << 26,
    disk_files=10_000, open_files=256, tmp_bytes=1 << 24,
)  # fmt: skip
TRUE = ["/bin/true"]
COMPUTE = """\
import time
started = time.process_time()
total = 0
for number in range(STEPS):
    total = (total * 31 + number) % 1000003
print(time.process_time() - started)
"""


def measure(tiny: bool) -> Iterator[Figure]:
    """Yield the cost of the primitive over bare bubblewrap, and of computing inside over outside."""
    with reachable_folder() as folder:
        checkout, trial = folder / "checkout", folder / "trial"
        for place in (checkout, trial):
            place.mkdir(mode=0o755)
        yield _start_cost(checkout, trial, 4 if tiny else 100)
        yield _inside(checkout, trial, (3, 20_000) if tiny else (300, 500_000))


def _start_cost(checkout: Path, trial: Path, rounds: int) -> Figure:
    whole: list[float] = []
    bare: list[float] = []
    plain: list[float] = []
    _execute(TRUE, checkout, trial)
    for number in range(rounds):
        runs: list[tuple[list[float], Callable[[], float]]] = [
            (whole, lambda: _took_s(lambda: _execute(TRUE, checkout, trial))),
            (bare, lambda: _bare_s(checkout, trial)),
        ]
        for kept, run_s in runs if number % 2 else reversed(runs):
            kept.append(run_s())
        plain.append(_took_s(lambda: subprocess.run(TRUE, check=True)))
    ratio, low, high = ratio_interval(whole, bare)
    return Figure(
        "confined-start", "`confined_execute` of `/bin/true`, over bare bubblewrap with the same boundary",
        ratio, "x", TARGET, detail={
            "interval": (low, high), "rounds": rounds, "as_root": os.geteuid() == 0,
            "confined_ms": statistics.median(whole) * 1000, "bare_ms": statistics.median(bare) * 1000,
            "spawn_ms": statistics.median(plain) * 1000,
        },
    )  # fmt: skip


def _inside(checkout: Path, trial: Path, size: tuple[int, int]) -> Figure:
    rounds, steps = size
    python = str(SYSTEM_PYTHON) if SYSTEM_PYTHON.exists() else sys.executable
    words = [python, "-I", "-S", "-c", COMPUTE.replace("STEPS", str(steps))]
    inside, outside = [], []
    for number in range(rounds):
        for confined in (True, False) if number % 2 else (False, True):
            if confined:
                inside.append(float(_execute(words, checkout, trial).stdout_tail))
            else:
                done = subprocess.run(words, env=ENV, capture_output=True, check=True)
                outside.append(float(done.stdout))
    ratio, low, high = ratio_interval(inside, outside)
    return Figure(
        "confined-compute", "computing inside the boundary, over outside, CPU time", ratio, "x",
        TARGET_INSIDE, "near", detail={
            "interval": (low, high), "rounds": rounds, "inside_s": statistics.median(inside),
            "outside_s": statistics.median(outside),
        },
    )  # fmt: skip


def _execute(words: list[str], checkout: Path, trial: Path) -> Execution:
    done = confined_execute(
        words, cwd=trial, writable=[trial], readable=[checkout], deadline=Deadline.after(120), env=ENV,
        limits=LIMITS,
    )  # fmt: skip
    assert done.exit_code == 0, done
    return done


def _bare_s(checkout: Path, trial: Path) -> float:
    """Return how long the same binary takes with the same arguments and filter: no gate, no limits.

    Everything around it, as opening places and lending them to another user, is not counted.
    """
    with ExitStack() as stack:
        places = open_places([trial], [checkout], stack)
        identity = take_identity(find_backend().path, stack)
        if identity.slot is not None:
            lend(places, identity.slot, stack)
        build = Builder(places, uid=identity.uid, gid=identity.gid, network=Network.none(), stack=stack)
        arguments = build.arguments(cwd=PurePosixPath(trial), env=ENV, limits=LIMITS)
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        stack.callback(os.close, null)
        fds = {
            **dict.fromkeys((0, 1, 2, STATUS_FD), null), **build.fds,
            ARGS_FD: memory_file("args", arguments.encoded(), stack),
            SECCOMP_FD: memory_file("filter", filter_program(pin_cpus=False), stack),
        }  # fmt: skip
        started_s = time.perf_counter()
        pid = spawn([*identity.prefix, "--args", str(ARGS_FD), "--", *TRUE], fds)
        assert os.waitpid(pid, 0)[1] == 0
        return time.perf_counter() - started_s


def _took_s(call: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    call()
    return time.perf_counter() - started_s
