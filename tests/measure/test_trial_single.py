"""Trials of a single-process benchmark, which shares its process with the candidate."""

from __future__ import annotations

import pytest
from measure.worlds import METRIC, SINGLE, VALIDATOR, World, make_spec
from support.tools import needs_cpu_time

from roundkit.measure.problems import WHAT_VALIDATORS_SEE, WHERE_PROGRAMS_ARE
from roundkit.models.campaign import Command, GuardMetric

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


def test_a_program_that_is_missing_inside_is_named_with_where_programs_are(single_world: World) -> None:
    for argv in (("no-such-program", "run"), ("/opt/no-such-program",)):
        single_world.spec = make_spec(SINGLE.model_copy(update={"argv": argv}))
        trial = single_world.trial({}, side="baseline")
        assert trial.problem == "baseline-crashed"
        assert trial.detail == f"there is no command {argv[0]!r} inside the boundary; {WHERE_PROGRAMS_ARE}"
    validator = Command(argv=("no-such-validator",), timeout_s=5.0)
    single_world.spec = make_spec(SINGLE, validator=validator)
    trial = single_world.trial({})
    assert trial.problem == "candidate-invalid"
    assert "did not run: there is no command 'no-such-validator' inside" in (trial.detail or "")


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
    assert (missing.problem, missing.detail) == (
        "candidate-result", "the result has no metric accuracy; it has checks, latency_ms",
    )  # fmt: skip


def test_a_benchmark_that_writes_nothing_is_told_what_to_write_and_where(single_world: World) -> None:
    silent = SINGLE.model_copy(update={"argv": ("{python}", "-c", "pass")})
    single_world.spec = make_spec(silent)
    trial = single_world.trial({}, side="baseline")
    assert trial.problem == "baseline-result"
    assert '{"metrics": {"latency_ms": 12.3}} to the file that ROUNDKIT_RESULT_PATH' in (trial.detail or "")


def test_a_validator_that_misses_a_file_is_told_what_it_sees(single_world: World) -> None:
    reads = Command(argv=("{python}", "-c", "open('data/words.txt')"), timeout_s=10.0)
    single_world.spec = make_spec(SINGLE, validator=reads)
    trial = single_world.trial({})
    assert trial.problem == "candidate-invalid"
    assert "FileNotFoundError" in (trial.detail or "")
    assert WHAT_VALIDATORS_SEE in (trial.detail or "")


@needs_cpu_time
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


def test_c07_outputs_deeper_than_any_path_are_the_candidates_fault(world: World) -> None:
    world.spec = make_spec(SINGLE)
    nest = (
        "import os\nhere = os.getcwd()\nos.chdir(os.environ['ROUNDKIT_OUTPUT_DIR'])\n"
        "for _ in range(30):\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)\nos.chdir(here)\n"
    )
    trial = world.trial({"prog/core.py": nest + (world.incumbent / "prog" / "core.py").read_text()})
    assert trial.problem == "candidate-result"
    assert "nested so deep" in (trial.detail or "")


def test_fault_17_c07_figures_whose_median_no_float_holds_are_the_candidates_problem(
    single_world: World,
) -> None:
    single_world.spec = make_spec(SINGLE.model_copy(update={"clock_tolerance": None}))
    huge = '{"metrics": {"latency_ms": [1.7e308, 1.7e308]}}'
    code = f"import os\nopen(os.environ['ROUNDKIT_RESULT_PATH'], 'w').write('{huge}')\nos._exit(0)\n"
    trial = single_world.trial({"prog/core.py": code})
    assert (trial.problem, trial.value) == ("candidate-result", None)
    assert "1.7e+308" in (trial.detail or "")
