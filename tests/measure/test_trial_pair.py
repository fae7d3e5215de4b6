"""Trials of a driver and a worker: real processes, each behind its own boundary."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from measure.worlds import HIDDEN, LIMITS, PAIR, VALIDATOR, World, make_spec, planned
from support.tools import needs_cpu_time

from roundkit.host.confine import cgroup
from roundkit.host.devices import Binding
from roundkit.measure.boundary import hash_seed
from roundkit.measure.boundary_book import BoundaryBook
from roundkit.measure.broke import MeasurementBroke
from roundkit.measure.trial import run_trial
from roundkit.models.readings import reading_beside
from roundkit.models.trial import Trial


def spy(code: str) -> Mapping[str, str]:
    """A candidate that looks around at import and says on standard error what it found."""
    indented = "\n".join(f"    {line}" for line in code.splitlines())
    return {
        "prog/core.py": "import json, os, sys, time\n"
        f"def look():\n{indented}\n"
        "print('SPY ' + json.dumps(look()), file=sys.stderr)\n"
        "def work(payload):\n    return sum(range(payload['n']))\n"
    }


def seen(trial: Trial) -> object:
    assert trial.problem is None, trial.detail
    [line] = [line for line in trial.executions["worker"].stderr_tail.splitlines() if line.startswith("SPY ")]
    return json.loads(line.removeprefix("SPY "))


def test_a_trial_reports_every_repetition_and_the_coordinators_own_readings(world: World) -> None:
    world.spec = make_spec(validator=VALIDATOR)
    trial = world.trial({})
    assert trial.problem is None, trial.detail
    assert len(trial.metrics["latency_ms"]) == 2
    assert trial.value == pytest.approx(sum(trial.metrics["latency_ms"]) / 2)
    assert trial.validated is True
    assert list(trial.executions) == ["driver", "worker", "validator"]
    assert trial.resources.wall_s is not None
    assert trial.resources.cpu_s is not None
    assert Trial.from_bytes(trial.to_bytes(), place="record") == trial


def test_fault_03_worker_that_exits_or_is_killed_is_a_crash_of_its_side(world: World) -> None:
    cases = {
        "def work(payload):\n    import os\n    os._exit(3)\n": "exit code 3",
        "def work(payload):\n    import os\n    os.kill(os.getpid(), 11)\n": "SIGSEGV",
        "def work(payload):\n    raise ValueError('no such luck')\n": "no such luck",
        "def work(payload):\n    import os\n    os._exit(0)\n": "worker is gone",
        "import no_such_module\n": "no_such_module",
        "def work(payload):\n    import os\n    os.closerange(3, 64)\n": "Bad file descriptor",
        "import atexit, os\natexit.register(os._exit, 5)\n"
        "def work(payload):\n    return sum(range(payload['n']))\n": "exit code 5",
    }
    for code, expected in cases.items():
        trial = world.trial({"prog/core.py": code})
        assert trial.problem == "candidate-crashed", (code, trial.detail)
        assert expected in (trial.detail or ""), (code, trial.detail)
        assert trial.value is None
    assert (
        world.trial({"prog/core.py": "import no_such_module\n"}, side="baseline").problem
        == "baseline-crashed"
    )
    assert world.trial({}).problem is None


def test_fault_01_a_worker_that_never_answers_overruns(world: World) -> None:
    world.spec = make_spec(PAIR.model_copy(update={"timeout_s": 1.5}))
    for code in ("while True: pass\n", "def work(payload):\n    while True: pass\n"):
        trial = world.trial({"prog/core.py": code})
        assert trial.problem == "candidate-overrun"
        assert trial.executions["worker"].end_reason == "deadline"


def test_c05_a_worker_over_a_limit_is_stopped_and_says_which(world: World) -> None:
    memory = "def work(payload):\n    return len(bytearray(2_000_000_000))\n"
    disk = (
        "import time\n"
        "def work(payload):\n"
        "    open('/round/scratch/f', 'wb').write(bytes(1 << 23))\n"
        "    while True: time.sleep(9)\n"
    )
    world.spec = make_spec(limits=LIMITS.model_copy(update={"disk_bytes": 1 << 22}))
    trial = world.trial({"prog/core.py": disk})
    assert trial.problem == "candidate-limit", trial.detail
    assert "disk" in (trial.detail or "")
    # Without a cgroup the limit is each process's, whose allocation then fails.
    assert world.trial({"prog/core.py": memory}).problem in ("candidate-limit", "candidate-crashed")


def test_m09_worker_sees_neither_result_nor_seed_nor_hidden_files(world: World) -> None:
    trial = world.trial(
        spy(
            "found = {}\n"
            "found['environment'] = sorted(name for name in os.environ if name.startswith('ROUNDKIT'))\n"
            "found['trial'] = os.path.exists('/round/trial')\n"
            "found['round'] = sorted(os.listdir('/round'))\n"
            "found['hidden'] = os.path.exists('bench/hidden/answers.json') or"
            " os.path.exists('bench/hidden')\n"
            "found['cwd'] = os.getcwd()\n"
            "found['descriptors'] = [fd for fd in range(3, 64) if os.path.exists(f'/proc/self/fd/{fd}')"
            " and os.readlink(f'/proc/self/fd/{fd}').startswith('/')]\n"
            "return found"
        )
    )
    assert seen(trial) == {
        "environment": [],
        "trial": False,
        "round": ["checkout", "scratch"],
        "hidden": False,
        "cwd": "/round/checkout",
        "descriptors": [],
    }


def test_c01_worker_cannot_write_its_checkout_or_what_judges_it(world: World) -> None:
    trial = world.trial(
        spy(
            "refused = []\n"
            "for path in ('prog/core.py', 'bench/driver.py', 'bench/new.py', 'new.py',\n"
            "             '/opt/roundkit/roundkit/harness/__init__.py'):\n"
            "    try:\n"
            "        open(path, 'a').write('x')\n"
            "    except OSError:\n"
            "        refused.append(path)\n"
            "return len(refused)"
        )
    )
    assert seen(trial) == 5
    assert (world.incumbent / "bench" / "driver.py").read_text().endswith("driver(run)\n")


def test_driver_sees_the_incumbents_protected_files_and_nothing_of_the_candidate(world: World) -> None:
    spying = (
        (world.incumbent / "bench" / "driver.py")
        .read_text()
        .replace(
            "def run(session):",
            "def run(session):\n"
            "    import os, sys\n"
            "    found = sorted(os.path.join(a, name) for a, _, names in os.walk('.') for name in names)\n"
            "    print('SEEN', *found, file=sys.stderr)\n",
        )
    )
    (world.incumbent / "bench" / "driver.py").write_text(spying)
    trial = world.trial({"bench/planted.py": "", "planted.py": ""})
    assert trial.problem is None, trial.detail
    names = ("driver", "single", "validate", "worker")
    expected = " ".join(f"./bench/{name}.py" for name in names)
    assert f"SEEN {expected}\n" in trial.executions["driver"].stderr_tail


def test_fault_07_protected_file_changed_in_the_candidate_is_overridden(world: World) -> None:
    forged = "import sys\nsys.exit('the forged worker ran')\n"
    trial = world.trial({"bench/worker.py": forged, "bench/driver.py": forged, "bench/validate.py": ""})
    assert trial.problem is None, trial.detail


def test_fault_08_worker_that_writes_a_result_has_no_effect(world: World) -> None:
    forge = (
        "import os, sys\n"
        "for path in ('/round/trial/result.json', 'result.json', '/round/scratch/result.json'):\n"
        "    try:\n"
        "        open(path, 'w').write('{\"metrics\": {\"latency_ms\": 1e-9}}')\n"
        "    except OSError:\n"
        "        pass\n"
        "def work(payload):\n    return sum(range(payload['n']))\n"
    )
    trial = world.trial({"prog/core.py": forge})
    assert trial.problem is None, trial.detail
    assert min(trial.metrics["latency_ms"]) > 1e-9


def test_m09_patched_clock_in_the_worker_has_no_effect(world: World) -> None:
    patch = (
        "import time\ntime.perf_counter_ns = lambda: 0\ntime.perf_counter = time.monotonic = lambda: 0.0\n"
    )
    trial = world.trial({"prog/core.py": patch + "def work(payload):\n    return sum(range(payload['n']))\n"})
    assert trial.problem is None, trial.detail
    assert min(trial.metrics["latency_ms"]) > 0


def test_m09_wrong_answers_are_rejected_by_the_validator_which_alone_sees_the_hidden(world: World) -> None:
    world.spec = make_spec(validator=VALIDATOR)
    wrong = world.trial({"prog/core.py": "def work(payload):\n    return 1\n"})
    assert (wrong.problem, wrong.validated) == ("candidate-invalid", False)
    assert "wrong answer" in (wrong.detail or "")
    (world.incumbent / "bench" / "hidden" / "answers.json").write_text('{"offset": 1}')
    assert HIDDEN == ("bench/hidden/**",)
    assert world.trial({}).problem == "candidate-invalid"


def test_both_sides_have_the_same_paths_variables_and_mount_points(world: World) -> None:
    look = spy("return [sorted(os.environ.items()), os.getcwd(), sorted(os.listdir('.')), __file__]")
    places = []
    said = []
    for side in ("baseline", "candidate"):
        trial = world.trial(look, side=side)
        said.append(seen(trial))
        boundaries = [world.book.boundaries[trial.executions[role].boundary] for role in ("driver", "worker")]
        places.append([[mount.at for mount in boundary.mounts] for boundary in boundaries])
    assert said[0] == said[1]
    assert places[0] == places[1]


def test_hash_seed_differs_between_pairs_and_not_between_sides() -> None:
    seeds = {hash_seed("0" * 64, pair) for pair in range(100)}
    assert len(seeds) == 100
    assert all(0 <= seed < 4294967295 for seed in seeds)


@pytest.mark.parametrize(
    ("changes", "side", "problem"),
    [
        ("raise RuntimeError('owner made a mistake')", "candidate", "candidate-benchmark-broke"),
        ("raise RuntimeError('owner made a mistake')", "baseline", "baseline-benchmark-broke"),
        ("import os; os._exit(0)", "candidate", "candidate-result"),
        ("import os; os._exit(0)", "baseline", "baseline-result"),
    ],
)
def test_a_driver_that_fails_by_itself_is_the_benchmarks_fault(
    world: World, changes: str, side: str, problem: str
) -> None:
    broken = (
        (world.incumbent / "bench" / "driver.py")
        .read_text()
        .replace("def run(session):", f"def run(session):\n    {changes}")
    )
    (world.incumbent / "bench" / "driver.py").write_text(broken)
    trial = world.trial({}, side=side)  # type: ignore[arg-type]
    assert trial.problem == problem, trial.detail


def test_a_driver_that_hangs_after_its_worker_is_gone_is_the_benchmarks_fault(world: World) -> None:
    world.spec = make_spec(PAIR.model_copy(update={"timeout_s": 4}))
    driver = world.incumbent / "bench" / "driver.py"
    driver.write_text(driver.read_text() + "import time\nwhile True: time.sleep(9)\n")
    leaving = (
        "import os, threading\n"
        "def work(payload):\n"
        "    threading.Timer(0.3, os._exit, [0]).start()\n"
        "    return sum(range(payload['n']))\n"
    )
    assert world.trial({"prog/core.py": leaving}).problem == "candidate-benchmark-broke"


@needs_cpu_time
def test_m13_instruments_of_the_coordinator_decide_over_what_is_reported(world: World) -> None:
    for instrument in ("wall", "cpu"):
        world.spec = make_spec(PAIR.model_copy(update={"instrument": instrument}))
        trial = world.trial({})
        assert trial.problem is None, trial.detail
        reading = trial.resources.wall_s if instrument == "wall" else trial.resources.cpu_s
        assert reading is not None
        assert trial.value == pytest.approx(reading * 1000)
        assert len(trial.metrics["reported.latency_ms"]) == 2


WORK_NOBODY_WAITS_FOR = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def work(payload):
    reading, writing = os.pipe()
    if not os.fork():
        while time.process_time() < 1.0: pass
        os._exit(0)
    os.close(writing)
    os.read(reading, 1)
    time.sleep(0.1)
    return sum(range(payload["n"]))
"""


@needs_cpu_time
def test_m09_cpu_time_holds_children_that_nobody_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a cgroup their time is nowhere to be read, so that it decides nothing."""
    world.spec = make_spec(PAIR.model_copy(update={"instrument": "cpu"}))
    trial = world.trial({"prog/core.py": WORK_NOBODY_WAITS_FOR})
    assert trial.value is not None, trial.detail
    assert trial.value > 1000
    assert reading_beside("cpu", trial) == trial.value
    monkeypatch.setattr(cgroup, "hierarchies", dict)
    with pytest.raises(MeasurementBroke, match="instrument-missing"):
        world.trial({"prog/core.py": WORK_NOBODY_WAITS_FOR})
    world.spec = make_spec(PAIR.model_copy(update={"instrument": "wall"}))
    trial = world.trial({"prog/core.py": WORK_NOBODY_WAITS_FOR})
    assert trial.resources.cpu_s is not None
    assert trial.resources.cpu_s < 0.9
    assert reading_beside("cpu", trial) is None


def test_fault_27_a_cpu_set_that_does_not_exist_breaks_the_measurement(world: World) -> None:
    world.spec = make_spec(pin_cpus=True)
    files = world.files_of(world.incumbent)
    with pytest.raises(MeasurementBroke, match="cpu-set"):
        run_trial(
            world.spec,
            planned(),
            files,
            world.root / "trial",
            binding=Binding(cpus=frozenset({100000})),
            book=BoundaryBook({"work": world.root}),
        )
    assert not (world.root / "trial").exists()
