"""The owner's side: what a few lines of driver and worker give."""

from roundkit.harness import EXIT_NOT_STARTED_BY_COORDINATOR

SUM = "def answer(numbers): return sum(numbers)\n"


def test_result_and_outputs_of_a_plain_benchmark(trial):
    outcome = trial(
        candidate=SUM,
        repetitions=3,
        run="""
        for repetition in range(session.repetitions):
            numbers = [session.random(repetition).randrange(1000) for _ in range(5)]
            total = session.measure(lambda: session.call("answer", numbers))
            session.save(f"repetition-{repetition}", {"numbers": numbers, "total": total})
        """,
    )
    assert (outcome.driver_exit, outcome.worker_exit) == (0, 0)
    assert outcome.result == {"metrics": {"latency_ms": outcome.latencies_ms}, "harness": 1}
    assert len(outcome.latencies_ms) == 3
    assert all(latency > 0 for latency in outcome.latencies_ms)
    assert sorted(outcome.outputs) == ["repetition-0", "repetition-1", "repetition-2"]
    assert all(sum(saved["numbers"]) == saved["total"] for saved in outcome.outputs.values())
    assert len({tuple(saved["numbers"]) for saved in outcome.outputs.values()}) == 3


def test_several_calls_of_one_block_are_one_repetition(trial):
    outcome = trial(
        candidate=SUM,
        run="with session.timed():\n    session.call('answer', [1])\n    session.call('answer', [2])",
    )
    assert len(outcome.latencies_ms) == 1


def test_clock_covers_the_round_trip_and_not_the_drivers_own_work(trial):
    outcome = trial(
        candidate=SUM,
        run="""
        import time
        now_ns = 0
        def read():
            nonlocal now_ns
            now_ns += 1_000_000
            return now_ns
        time.perf_counter_ns = read
        with session.timed():
            now_ns += 10**12
            session.call("answer", [1])
            now_ns += 10**12
            session.call("answer", [1])
        """,
    )
    assert outcome.latencies_ms == [2.0], "two calls, from one reading of the clock to the next"


def test_import_happens_before_the_clock(trial):
    outcome = trial(
        candidate="import pathlib, time\ntime.sleep(0.5)\npathlib.Path('imported').touch()\n" + SUM,
        run="""
        import pathlib
        session.save("imported", pathlib.Path("checkout/imported").exists())
        with session.timed():
            session.call("answer", [1])
        """,
    )
    assert outcome.outputs == {"imported": True}


def test_every_side_may_print(trial):
    outcome = trial(
        candidate="""
        import os, subprocess, sys
        print("at import")
        def answer(numbers):
            print("in the call", flush=True)
            os.write(1, b"past sys.stdout\\n")
            subprocess.run(["echo", "from a child"], check=True)
            assert sys.stdin.read() == ""
            return sum(numbers)
        """,
        run="""
        print("driver speaking", flush=True)
        with session.timed():
            assert session.call("answer", [1, 2]) == 3
        """,
    )
    assert outcome.driver_exit == 0, outcome.driver_stderr
    for words in ("at import", "in the call", "past sys.stdout", "from a child"):
        assert words in outcome.worker_stderr
    assert "driver speaking" in outcome.driver_stderr


def test_candidate_modules_do_not_shadow_the_standard_library(trial, tmp_path):
    outcome = trial(
        candidate="""
        from pathlib import Path
        Path("fractions.py").write_text("FORGED = True\\n")
        import fractions
        def answer(numbers):
            return hasattr(fractions, "FORGED")
        """
    )
    assert (tmp_path / "checkout" / "fractions.py").exists()
    assert outcome.outputs == {"answer": False}


def test_checkout_comes_before_installed_packages(trial):
    outcome = trial(
        candidate="""
        import os, sys
        def answer(numbers):
            later = sys.path[sys.path.index(os.getcwd()):]
            return [path for path in sys.path if "site-packages" in path and path not in later]
        """
    )
    assert outcome.outputs == {"answer": []}


def test_harness_needs_nothing_but_its_own_folder_and_the_standard_library(trial):
    outcome = trial(
        flags=("-S", "-s", "-P"),
        candidate="""
        import sys
        def answer(numbers):
            rooms = {name.split(".")[1] for name in sys.modules if name.startswith("roundkit.")}
            outside = {name.split(".")[0] for name in sys.modules} - sys.stdlib_module_names
            return [sorted(rooms), sorted(outside)]
        """,
    )
    assert outcome.outputs == {"answer": [["harness"], ["__main__", "candidate", "roundkit"]]}


def test_started_by_hand_says_what_to_do(trial):
    outcome = trial(candidate=SUM, environment={"ROUNDKIT_SEED": "seven"})
    assert outcome.driver_exit == EXIT_NOT_STARTED_BY_COORDINATOR
    assert "seven" in outcome.driver_stderr
    assert "start it with `roundkit trial`" in outcome.driver_stderr
    assert "Traceback" not in outcome.driver_stderr


def test_owner_mistakes_are_the_owners(trial):
    outcome = trial(candidate=SUM, run="with session.timed():\n    pass")
    assert outcome.driver_exit == 1
    assert "there is nothing to measure" in outcome.driver_stderr
    assert outcome.result is None


def test_a_repetition_that_was_not_made_is_no_result(trial):
    outcome = trial(candidate=SUM, repetitions=2)
    assert outcome.driver_exit == 1
    assert "made 1 timed repetitions, not 2" in outcome.driver_stderr
    assert outcome.result is None


def test_output_names_are_plain(trial):
    outcome = trial(candidate=SUM, run="session.save('../result', 1)")
    assert outcome.driver_exit == 1
    assert "not a plain output name" in outcome.driver_stderr
