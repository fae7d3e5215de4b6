"""Trials of a single-process benchmark, which shares its process with the candidate."""

from __future__ import annotations

import pytest
from measure.worlds import METRIC, SINGLE, VALIDATOR, World, make_spec

from roundkit.models.campaign import GuardMetric

HONEST = "def work(payload):\n    return sum(range(payload['n']))\n"
FORGED = '{"metrics": {"latency_ms": 0.000001, "checks": 3}}'
WRITE = f"open(os.environ['ROUNDKIT_RESULT_PATH'], 'w').write('{FORGED}')"


def test_a_trial_reports_and_is_validated(single_world: World) -> None:
    single_world.spec = make_spec(SINGLE, validator=VALIDATOR)
    trial = single_world.trial({})
    assert trial.problem is None, trial.detail
    assert len(trial.metrics["latency_ms"]) == 2
    assert list(trial.executions) == ["benchmark", "validator"]
    wrong = single_world.trial({"prog/core.py": "def work(payload):\n    return 1\n"})
    assert wrong.problem == "candidate-invalid"


def test_fault_03_one_process_that_exits_or_is_killed_is_a_crash_of_its_side(single_world: World) -> None:
    crashes = {
        "import os\nos._exit(3)\n": "exit code 3",
        "import os\nos.kill(os.getpid(), 9)\n": "SIGKILL",
        "raise ValueError('no such luck')\n": "no such luck",
    }
    for code, expected in crashes.items():
        trial = single_world.trial({"prog/core.py": code})
        assert trial.problem == "candidate-crashed"
        assert expected in (trial.detail or "")
    assert single_world.trial({"prog/core.py": "import os\nos._exit(3)\n"}, side="baseline").problem == (
        "baseline-crashed"
    )
    assert single_world.trial({}).problem is None


def test_fault_01_one_process_that_never_ends_overruns(single_world: World) -> None:
    single_world.spec = make_spec(SINGLE.model_copy(update={"timeout_s": 1.0}))
    trial = single_world.trial({"prog/core.py": "while True: pass\n"})
    assert trial.problem == "candidate-overrun"


@pytest.mark.parametrize(
    "code",
    [
        # Before the benchmark's own result, after it, and in place of it.
        f"import os\n{WRITE}\n",
        f"import atexit, os\natexit.register(lambda: {WRITE})\n",
        "import atexit, os\ndef swap():\n    path = os.environ['ROUNDKIT_RESULT_PATH']\n"
        f"    open(path + '.x', 'w').write('{FORGED}')\n    os.rename(path + '.x', path)\n"
        "atexit.register(swap)\n",
        # Through a descriptor that was opened first.
        "import atexit, os\nheld = open(os.environ['ROUNDKIT_RESULT_PATH'], 'w')\ndef write():\n"
        f"    held.truncate(0)\n    held.write('{FORGED}')\natexit.register(write)\n",
    ],
    ids=["before", "after", "renamed-over", "held-open"],
)
def test_fault_08_a_result_that_was_written_twice_is_not_believed(single_world: World, code: str) -> None:
    trial = single_world.trial({"prog/core.py": code + HONEST})
    assert trial.problem == "candidate-result", trial.metrics
    assert trial.value is None


@pytest.mark.parametrize(
    "leave",
    [
        "os.symlink('/round/checkout/bench/single.py', path)",
        "os.link(os.environ['ROUNDKIT_OUTPUT_DIR'] + '/x', path)",
        "os.mkfifo(path)",
        "os.mkdir(path)",
        "os.truncate(open(path, 'w').name, 1 << 25)",
        "open(path, 'wb').write(b'\\xff{')",
        "open(path, 'w').write('{\"timeout\": true}')",
        "open(path, 'w').write('{\"metrics\": {\"latency_ms\": NaN}}')",
        "open(path, 'w').write('{\"metrics\": {\"other\": 1}}')",
        "None",
    ],
)
def test_c07_fault_17_hostile_or_missing_result_is_a_failure_with_a_reason(
    single_world: World, leave: str
) -> None:
    code = (
        "import os\npath = os.environ['ROUNDKIT_RESULT_PATH']\n"
        "open(os.environ['ROUNDKIT_OUTPUT_DIR'] + '/x', 'w').write('{}')\n"
        f"{leave}\nos._exit(0)\n"
    )
    trial = single_world.trial({"prog/core.py": code})
    assert trial.problem == "candidate-result"
    assert trial.detail


def test_fault_09_m09_a_clock_that_runs_fast_disagrees_with_the_coordinators(single_world: World) -> None:
    fast = "import time\nticks = iter(range(0, 10 ** 9, 10 ** 5))\ntime.perf_counter = lambda: next(ticks)\n"
    trial = single_world.trial({"prog/core.py": fast + HONEST})
    assert trial.problem == "candidate-clock"
    assert "ms passed" in (trial.detail or "")
    assert single_world.trial({"prog/core.py": fast + HONEST}, side="baseline").problem == "baseline-clock"
    stopped = "import time\ntime.perf_counter = lambda: 0.0\n"
    assert single_world.trial({"prog/core.py": stopped + HONEST}).problem == "candidate-result"


def test_m09_a_detached_writer_is_gone_or_noticed(single_world: World) -> None:
    detached = (
        "import os\n"
        "parent = os.getpid()\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    while os.getppid() == parent: pass\n"
        f"    {WRITE}\n"
        "    os._exit(0)\n"
    )
    trial = single_world.trial({"prog/core.py": detached + HONEST})
    assert trial.problem in (None, "candidate-result")
    assert trial.value is None or trial.value > 0.000001


def test_fault_12_hidden_file_is_not_there_for_one_process_either(single_world: World) -> None:
    steal = "open('bench/hidden/answers.json')\n"
    trial = single_world.trial({"prog/core.py": steal + HONEST})
    assert trial.problem == "candidate-crashed"
    assert "answers.json" in (trial.detail or "")


def test_fault_20_m10_a_patched_clock_and_state_do_not_reach_the_next_trial(
    single_world: World,
) -> None:
    leave = (
        "import os, time\n"
        "for folder in ('/tmp', '/dev/shm', '/round/scratch', '/round/trial/outputs'):\n"
        "    open(folder + '/left', 'w').write('behind')\n"
        "time.perf_counter = lambda: 1e9\n"
    )
    assert single_world.trial({"prog/core.py": leave + HONEST}).problem == "candidate-result"
    look = (
        "import os\n"
        "for folder in ('/tmp', '/dev/shm', '/round/scratch', '/round/trial/outputs'):\n"
        "    assert os.listdir(folder) == [], folder\n"
    )
    trial = single_world.trial({"prog/core.py": look + HONEST})
    assert trial.problem is None, trial.detail


def test_guard_metrics_are_kept_and_a_missing_one_fails(single_world: World) -> None:
    guards = (GuardMetric(name="checks", direction="higher", limit=0.0),)
    single_world.spec = make_spec(SINGLE, metric=METRIC.model_copy(update={"guards": guards}))
    trial = single_world.trial({})
    assert trial.problem is None, trial.detail
    assert trial.metrics["checks"] == (3.0,)
    guards = (GuardMetric(name="accuracy", direction="higher", limit=0.0),)
    single_world.spec = make_spec(SINGLE, metric=METRIC.model_copy(update={"guards": guards}))
    missing = single_world.trial({})
    assert (missing.problem, missing.detail) == ("candidate-result", "the result has no metric accuracy")


def test_coordinators_clock_needs_no_result_at_all(single_world: World) -> None:
    single_world.spec = make_spec(SINGLE.model_copy(update={"instrument": "cpu"}))
    trial = single_world.trial({"prog/core.py": "import os\nos._exit(0)\n"})
    assert trial.problem is None, trial.detail
    assert trial.value is not None
    broken = single_world.trial({"prog/core.py": f"import os\n{WRITE}\n{WRITE}\nos._exit(0)\n"})
    assert broken.problem == "candidate-result"


@pytest.mark.parametrize(
    "make", ["os.symlink('/round/checkout/bench/hidden/answers.json', place)", "os.mkfifo(place)"]
)
def test_c07_an_answer_that_is_no_plain_file_never_reaches_the_validator(world: World, make: str) -> None:
    """A link that a candidate leaves as its answer would lead the validator to the hold-outs."""
    world.spec = make_spec(SINGLE, validator=VALIDATOR)
    leave = f"import os\nplace = os.environ['ROUNDKIT_OUTPUT_DIR'] + '/more.json'\n{make}\n"
    source = (world.incumbent / "prog" / "core.py").read_text()
    trial = world.trial({"prog/core.py": leave + source})
    assert trial.problem == "candidate-result"
    assert "no plain file" in (trial.detail or "")
    assert "validator" not in trial.executions
