"""What a candidate can try from inside the worker, and what comes of it."""

from roundkit.harness import EXIT_CANDIDATE_RAISED, EXIT_WORKER_LOST

FIND_PIPE = """
import gc
def pipe():
    from roundkit.harness.frames import Pipe
    return next(thing for thing in gc.get_objects() if isinstance(thing, Pipe))
"""


def test_m09_fault_09_patched_clock_has_no_effect(trial):
    outcome = trial(
        candidate="""
        import time
        sleep = time.sleep
        for name in ("perf_counter", "monotonic", "time", "process_time"):
            setattr(time, name, lambda: 0.0)
            setattr(time, name + "_ns", lambda: 0)
        def answer(numbers):
            sleep(0.2)
            return sum(numbers)
        """
    )
    assert outcome.latencies_ms[0] >= 200


def test_m09_work_in_a_subprocess_is_counted(trial):
    outcome = trial(
        candidate="""
        import subprocess, sys
        def answer(numbers):
            program = f"import time; time.sleep(0.2); print(sum({numbers}))"
            return int(subprocess.check_output([sys.executable, "-c", program]))
        """
    )
    assert outcome.outputs == {"answer": 6}
    assert outcome.latencies_ms[0] >= 200


def test_m09_fault_09_cached_answers_meet_other_inputs(trial):
    outcome = trial(
        candidate="""
        kept = []
        def answer(numbers):
            kept.append(sum(numbers))
            return kept[0]
        """,
        repetitions=2,
        run="""
        for repetition in range(session.repetitions):
            numbers = [session.random(repetition).random()]
            with session.timed():
                total = session.call("answer", numbers)
            session.save(f"repetition-{repetition}", total == sum(numbers))
        """,
    )
    assert outcome.outputs == {"repetition-0": True, "repetition-1": False}


def test_m09_fault_09_lazy_answers_are_no_answers(trial):
    outcome = trial(candidate="def answer(numbers): return (number for number in numbers)\n")
    assert outcome.driver_exit == EXIT_CANDIDATE_RAISED
    assert "generator is not JSON serializable" in outcome.driver_stderr
    assert outcome.result is None


def test_m09_fault_10_the_last_repetition_is_saved_for_the_validator_too(trial):
    outcome = trial(
        candidate="""
        calls = []
        def answer(numbers):
            calls.append(1)
            return sum(numbers) if len(calls) <= 10 else 0
        """,
        repetitions=11,
        run="""
        for repetition in range(session.repetitions):
            with session.timed():
                total = session.call("answer", [1, 2])
            session.save(f"repetition-{repetition:02}", total)
        """,
    )
    assert outcome.outputs["repetition-09"] == 3
    assert outcome.outputs["repetition-10"] == 0


def test_m09_fault_11_mutated_inputs_do_not_reach_the_next_call(trial):
    outcome = trial(
        candidate="""
        def answer(numbers):
            total = sum(numbers)
            numbers[:] = [0] * len(numbers)
            return total
        """,
        run="""
        numbers = [1, 2, 3]
        with session.timed():
            totals = [session.call("answer", numbers) for _ in range(3)]
        session.save("totals", [totals, numbers])
        """,
    )
    assert outcome.outputs == {"totals": [[6, 6, 6], [1, 2, 3]]}


def test_m09_the_worker_knows_neither_result_nor_seed(trial):
    outcome = trial(
        candidate="""
        import os
        def answer(numbers):
            return sorted(name for name in os.environ if name.startswith("ROUNDKIT"))
        """
    )
    assert outcome.outputs == {"answer": []}


def test_m09_an_answer_sent_before_its_request_is_refused(trial):
    outcome = trial(
        candidate=FIND_PIPE
        + """
from roundkit.harness.frames import encode
pipe().send(encode({"token": "", "answer": "ready"}))
pipe().send(encode({"token": "", "answer": 6}))
def answer(numbers):
    return sum(numbers)
"""
    )
    assert outcome.driver_exit == EXIT_WORKER_LOST
    assert "answers no request" in outcome.driver_stderr
    assert outcome.result is None


def test_m09_a_forked_double_cannot_answer_twice(trial):
    outcome = trial(
        candidate="""
        import os, time
        def answer(numbers):
            if numbers == [1] and os.fork():
                time.sleep(0.3)
            if numbers == [2]:
                time.sleep(1)
            return sum(numbers)
        """,
        run="with session.timed():\n    session.call('answer', [1])\n    session.call('answer', [2])",
    )
    assert outcome.driver_exit == EXIT_WORKER_LOST
    assert outcome.result is None


def test_fault_03_candidate_that_exits_the_worker(trial):
    outcome = trial(candidate="import os\ndef answer(numbers): os._exit(3)\n")
    assert outcome.driver_exit == EXIT_WORKER_LOST
    assert outcome.driver_stderr.splitlines() == ["candidate crashed: the worker is gone"]
    assert outcome.worker_exit == 3
    assert outcome.result is None


def test_fault_03_candidate_killed_by_a_signal(trial):
    outcome = trial(
        candidate="import os, signal\ndef answer(numbers): os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert outcome.driver_exit == EXIT_WORKER_LOST
    assert outcome.worker_exit == -9


def test_fault_03_candidate_that_exits_at_import(trial):
    outcome = trial(candidate="import os\nos._exit(0)\n")
    assert outcome.driver_exit == EXIT_WORKER_LOST
    assert outcome.result is None


def test_fault_03_worker_that_dies_while_it_is_asked(trial):
    outcome = trial(
        candidate="""
        import os, threading
        threading.Timer(0.3, os._exit, [3]).start()
        def answer(text): return 0
        """,
        run="""
        import time
        time.sleep(1)
        with session.timed():
            session.call("answer", "x" * 1_000_000)
        """,
    )
    assert outcome.driver_exit == EXIT_WORKER_LOST
    assert len(outcome.driver_stderr.splitlines()) == 1


def test_candidate_that_raises_is_quoted_in_one_bounded_line(trial):
    outcome = trial(
        candidate="def answer(numbers): raise ValueError('first\\nsecond \\x1b[31m' + 'x' * 1_000_000)\n"
    )
    assert outcome.driver_exit == EXIT_CANDIDATE_RAISED
    (line,) = outcome.driver_stderr.splitlines()
    assert line.startswith("candidate raised: ValueError: first second  [31mxxx")
    assert len(line) < 1100
    assert outcome.result is None


def test_candidate_that_raises_at_import(trial):
    outcome = trial(candidate="raise SystemExit('no more')\n")
    assert outcome.driver_exit == EXIT_CANDIDATE_RAISED
    assert "SystemExit: no more" in outcome.driver_stderr


def test_candidate_that_calls_sys_exit_has_raised(trial):
    outcome = trial(candidate="import sys\ndef answer(numbers): sys.exit(0)\n")
    assert outcome.driver_exit == EXIT_CANDIDATE_RAISED
    assert outcome.result is None


def test_candidate_without_the_promised_function(trial):
    outcome = trial(candidate="def other(): pass\n")
    assert outcome.driver_exit == EXIT_CANDIDATE_RAISED
    assert "AttributeError" in outcome.driver_stderr


def test_answer_over_the_frame_limit(trial):
    outcome = trial(candidate="def answer(numbers): return 'x' * 5000\n", options="limit_bytes=2000")
    assert outcome.driver_exit == EXIT_CANDIDATE_RAISED
    assert "over the limit of 2000" in outcome.driver_stderr


def test_announced_oversize_frame_is_not_read(trial):
    outcome = trial(
        candidate=FIND_PIPE
        + """
def answer(numbers):
    pipe()._outgoing.write(b"\\xff\\xff\\xff\\xff")
    return sum(numbers)
"""
    )
    assert outcome.driver_exit == EXIT_WORKER_LOST
    assert "4294967295 bytes is over the limit" in outcome.driver_stderr


def test_frames_that_are_no_json_object(trial):
    outcome = trial(
        candidate=FIND_PIPE
        + """
import struct
def answer(numbers):
    body = b"[" * 200_000
    pipe()._outgoing.write(struct.pack(">I", len(body)) + body)
    return sum(numbers)
"""
    )
    assert outcome.driver_exit == EXIT_WORKER_LOST
    assert "not JSON" in outcome.driver_stderr
    assert "Traceback" not in outcome.driver_stderr


def test_nan_is_no_answer(trial):
    outcome = trial(candidate="def answer(numbers): return float('nan')\n")
    assert outcome.driver_exit == EXIT_CANDIDATE_RAISED
