"""M12: ``roundkit measure`` and ``roundkit noise`` on real commands, outside any round."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyperf
import pytest
from support.checkouts import BENCHMARK, FAST, METRIC, PYTHON, SIX, Bench, Ran, argv, two_alike
from support.processes import ended_with_test
from support.synthetic import commit_all, reachable_folder
from support.terminals import read_until_closed
from support.tools import needs_cpu_time
from typer.testing import CliRunner

from roundkit.cli.app import app
from roundkit.core.git import Repository
from roundkit.core.yamlfile import load_yaml, plain
from roundkit.host.lease import holders
from roundkit.models.campaign import Noise
from roundkit.models.comparison import Comparison, NoiseReport
from roundkit.rules.comparison import disagreements, recomputed


@pytest.fixture
def bench(open_folder: Path) -> Bench:
    return two_alike(open_folder)


@pytest.fixture(scope="module")
def faster() -> Iterator[tuple[Bench, Ran]]:
    """A real gain, measured once for all that is written of it; there is no git on the PATH."""
    with reachable_folder() as folder:
        made = Bench(folder)
        made.add("a")
        made.add("b", prog_py=FAST, bench_py="raise SystemExit('the benchmark of B is never run')")
        outputs = ("--json", "c.json", "--html", "c.html", "--pyperf", "c.pyperf.json")
        validator = ("--validator", f"{PYTHON} validate.py")
        ran = made.run(
            "measure", "a", "b", *BENCHMARK, *METRIC, *SIX, *validator, *outputs, expect=0, PATH="/nowhere"
        )
        yield made, ran


def comparison(bench: Bench, name: str) -> Comparison:
    return Comparison.from_bytes((bench.root / name).read_bytes(), place=name)


def test_m12_a_real_gain_passes_and_says_so_in_a_sentence(faster: tuple[Bench, Ran]) -> None:
    bench, ran = faster
    assert ran.out.splitlines()[-1].startswith("pass: a gain of 97.8 % over 6 pairs, beyond 2.00 sigma")
    assert "B could forge them" in ran.out
    assert "measuring at most 6 pairs" in ran.err
    assert not holders(bench.leases)


def test_m12_the_file_holds_all_that_recomputing_takes(faster: tuple[Bench, Ran]) -> None:
    bench, ran = faster
    saved = comparison(bench, "c.json")
    assert saved.experiment is not None
    assert saved.experiment.lease is not None
    assert len(saved.experiment.lease.devices) == 1
    assert len(saved.experiment.trials) == 14
    assert saved.plan.baseline.kind == "folder"
    assert {trial.validated for trial in saved.experiment.trials} == {True}
    assert disagreements(saved) == ()
    assert recomputed(saved) == saved.verdict
    again = bench.run("measure", "--from", "c.json", expect=0)
    assert again.out == ran.out


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda file: file["verdict"].update(gain=0.5), "verdict.gain is 0.5, recomputed"),
        (lambda file: file["experiment"]["trials"][5].update(value=1.0), "trial 5: value is 1.0, recomputed"),
        (lambda file: file["experiment"]["trials"].pop(), "pairs at which it ended is 6, recomputed None"),
        (lambda file: file["run_spec"]["gates"].update(min_gain=0.0), "run_spec: gates is"),
        (lambda file: file["plan"].update(target_package="other"), "run_spec: round_digest is"),
        (lambda file: file.update(secret="0" * 64), "secret: is not the one"),
    ],
)
def test_m12_an_edited_file_is_found(
    faster: tuple[Bench, Ran], edit: Callable[[Any], object], said: str
) -> None:
    bench, _ = faster
    file = bench.saved("c.json")
    edit(file)
    (bench.root / "edited.json").write_text(json.dumps(file))
    assert said in bench.run("measure", "--from", "edited.json", expect=1).err


def test_m12_a_file_that_is_no_comparison_is_refused(faster: tuple[Bench, Ran]) -> None:
    bench, _ = faster
    (bench.root / "other.json").write_text("{}")
    assert "[not-a-comparison] --from" in bench.run("measure", "--from", "other.json", expect=3).err
    assert "[missing-file] --from" in bench.run("measure", "--from", "none.json", expect=3).err


def test_m12_the_page_is_small_offline_and_for_light_and_dark(faster: tuple[Bench, Ran]) -> None:
    bench, _ = faster
    page = (bench.root / "c.html").read_text()
    for shown in (
        "B is better than A", "a gain of 97.8 % over 6 pairs", "95 % interval", "<svg", "warm-up", "Trials",
        "prefers-color-scheme: dark", "transparent huge pages", "roundkit measure --from c.json",
        "Reported, forgeable",
    ):  # fmt: skip
        assert shown in page
    assert len(page) < 200_000
    assert "default-src 'none'" in page
    loaded = re.findall(r"""(?:src|href)=["']([^"']*)|url\(([^)]*)""", page)
    assert [address for row in loaded for address in row if address and not address.startswith("#")] == []


def test_fault_31_the_page_names_no_folder_of_its_author(faster: tuple[Bench, Ran]) -> None:
    bench, _ = faster
    page = (bench.root / "c.html").read_text()
    interpreter = Path(PYTHON.split()[0])
    assert f"…/{interpreter.resolve().name} " in page
    assert str(interpreter) not in page
    assert str(bench.root) not in page


def test_m12_pyperf_reads_both_sides_from_one_file(faster: tuple[Bench, Ran]) -> None:
    bench, _ = faster
    saved = comparison(bench, "c.json")
    suite = pyperf.BenchmarkSuite.load(str(bench.root / "c.pyperf.json"))
    assert suite.get_benchmark_names() == ["baseline: latency_ms", "candidate: latency_ms"]
    for side, median in (
        ("baseline", saved.verdict.baseline_median),
        ("candidate", saved.verdict.candidate_median),
    ):
        read = suite.get_benchmark(f"{side}: latency_ms")
        assert median is not None
        assert read.get_unit() == "second"
        assert read.get_nvalue() == 6
        assert read.median() == pytest.approx(median / 1000)
        assert read.get_runs()[0].warmups
    stats = pyperf_says("stats", bench.root / "c.pyperf.json")
    assert "Number of benchmarks: 2" in stats


def test_m12_pyperf_compares_the_two_sides_of_two_files(faster: tuple[Bench, Ran]) -> None:
    bench, _ = faster
    bench.run("measure", "--from", "c.json", "--pyperf", "side-{side}.json", expect=0)
    files = [bench.root / f"side-{side}.json" for side in ("baseline", "candidate")]
    assert "faster" in pyperf_says("compare_to", *files)


def pyperf_says(*words: str | Path) -> str:
    """Return what pyperf itself prints."""
    done = subprocess.run(
        [sys.executable, "-m", "pyperf", *map(str, words)], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_m12_no_difference_exits_with_1_from_a_terminal_with_a_bar(bench: Bench) -> None:
    ours, theirs = pty.openpty()
    measuring = ended_with_test(subprocess.Popen(
        argv("measure", "a", "b", *BENCHMARK, *METRIC, *SIX), cwd=bench.root, env=bench.environment(),
        stdout=subprocess.PIPE, stderr=theirs, text=True,
    ))  # fmt: skip
    os.close(theirs)
    shown = read_until_closed(ours)
    out, _ = measuring.communicate(timeout=300)
    assert measuring.returncode == 1, out
    assert out.splitlines()[-1].startswith("not-measured: ")
    assert b"trials at most" in shown
    assert b"/14" in shown


@pytest.mark.slow
def test_m12_a_shell_benchmark_with_a_build_and_the_revisions_of_a_repository(bench: Bench) -> None:
    repository = Repository(bench.root / "a")
    repository.git("init", "--quiet", "--initial-branch", "main")
    commit_all(repository, ["."], "slow")
    (bench.root / "a" / "source.txt").write_text("x" * 30)
    commit_all(repository, ["source.txt"], "short")
    (bench.root / "a" / "source.txt").write_text("not committed")
    commands = ("--benchmark", "/bin/sh bench.sh", "--build", "/bin/sh build.sh")
    ran = bench.run("measure", "a@HEAD~1", "a@main", *commands, *METRIC, *SIX, "--json", "c.json", expect=0)
    assert "pass: a gain of 25.0 %" in ran.out
    saved = comparison(bench, "c.json")
    assert saved.plan.candidate.commit == repository.resolve("main")
    assert [[log.step for log in logs] for logs in saved.builds] == [["build"], ["build"]]
    worse = bench.run("measure", "a@main", "a@HEAD~1", *commands, *METRIC, *SIX, expect=1)
    assert "a loss of 33.3 % over 6 pairs" in worse.out


@needs_cpu_time
def test_m12_a_clock_of_the_coordinators_own_needs_no_metric(bench: Bench) -> None:
    ran = bench.run(
        "measure", "a", "b", *BENCHMARK, "--instrument", "cpu", *SIX, "--min-gain", "0.9",
        "--json", "c.json", expect=1,
    )  # fmt: skip
    saved = comparison(bench, "c.json")
    assert saved.run_spec.metric.name == "cpu_ms"
    assert ran.out.splitlines()[-1].startswith(f"{saved.verdict.verdict}: ")
    assert saved.experiment is not None
    assert len(saved.experiment.trials) == 14


@pytest.mark.slow
def test_m12_a_broken_candidate_fails_and_a_broken_baseline_is_no_verdict(bench: Bench) -> None:
    bench.add("broken", prog_py="raise SystemExit('no such thing')")
    ran = bench.run("measure", "a", "broken", *BENCHMARK, *METRIC, *SIX, "--html", "c.html", expect=1)
    assert ran.out.splitlines()[-1] == "fail: candidate-crashed: ended with exit code 1: no such thing"
    assert "candidate-crashed" in (bench.root / "c.html").read_text()
    ran = bench.run("measure", "broken", "a", *BENCHMARK, *METRIC, *SIX, expect=1)
    assert "invalid: baseline-crashed" in ran.out


def test_m12_a_candidate_that_does_not_build_fails_and_a_baseline_ends_it(bench: Bench) -> None:
    bench.add("broken", prog_py="raise SystemExit('no such thing')")
    failing = ("--build", f"{PYTHON} -c 'import prog'")
    ran = bench.run("measure", "a", "broken", *BENCHMARK, *METRIC, *failing, "--json", "c.json", expect=1)
    assert ran.out.splitlines()[-1] == "fail: candidate-build"
    assert "no such thing" in ran.err
    assert comparison(bench, "c.json").experiment is None
    assert disagreements(comparison(bench, "c.json")) == ()
    ran = bench.run("measure", "broken", "a", *BENCHMARK, *METRIC, *failing, expect=1)
    assert "the baseline's build fails" in ran.err


def test_m12_c09_a_build_that_leaves_holes_is_rejected_before_they_are_read(bench: Bench) -> None:
    holes = "for n in range(9):\n    open(f'hole{n}', 'wb').truncate((1 << 30) - 1)\n"
    bench.add("hollow", prog_py=holes)
    building = ("--build", f"{PYTHON} -c 'import prog'")
    ran = bench.run("measure", "a", "hollow", *BENCHMARK, *METRIC, *building, "--json", "h.json", expect=1)
    assert ran.out.splitlines()[-1] == "fail: candidate-build"
    saved = comparison(bench, "h.json")
    assert "files that are larger by 9663676407 bytes" in saved.builds[1][-1].tail
    assert disagreements(saved) == ()


def test_m12_a_benchmark_that_reports_no_metric_is_told_how(bench: Bench) -> None:
    ran = bench.run("measure", "a", "b", "--benchmark", "/bin/sh quiet.sh", *METRIC, *SIX, expect=1)
    assert "ROUNDKIT_RESULT_PATH" in ran.out
    assert "invalid: baseline-result" in ran.out


def test_m12_a_validator_that_rejects_is_final(bench: Bench) -> None:
    bench.add("wrong", prog_py="def find(wanted):\n    return -1 if wanted == 7 else 1\n")
    validator = ("--validator", f"{PYTHON} validate.py")
    ran = bench.run("measure", "a", "wrong", *BENCHMARK, *METRIC, *SIX, *validator, expect=1)
    assert "fail: candidate-invalid" in ran.out
    assert "the answer is False" in ran.out


def test_m12_what_is_wrong_is_refused_all_at_once_before_anything_runs(bench: Bench) -> None:
    words = ("--cpus", "4096", "--python", "/no/python", "--read", "/no/folder", "--build", "make-nothing")
    refused = bench.run("measure", "a", "b", *BENCHMARK, *words, expect=3)
    for said in (
        "[device-missing] --cpus",
        "[interpreter-missing] --python",
        "[readable-missing] --read",
        "[command-missing] --build",
    ):
        assert said in refused.err


def test_m12_places_that_cannot_be_written_and_metrics_that_pyperf_lacks_are_refused(bench: Bench) -> None:
    refused = bench.run("measure", "a", "b", *BENCHMARK, "--html", "no/such/folder.html", expect=3)
    assert "[output-folder] --html" in refused.err
    rate = ("--metric", "rate", "--unit", "1/s", "--direction", "higher", "--pyperf", "p.json")
    assert "[pyperf-unit] --pyperf" in bench.run("measure", "a", "b", *BENCHMARK, *rate, expect=3).err


def test_m12_sides_that_are_not_there_are_refused(bench: Bench) -> None:
    assert "[side-missing] B" in bench.run("measure", "a", "none", *BENCHMARK, expect=3).err
    assert "[not-a-repository] B" in bench.run("measure", "a", "a@main", *BENCHMARK, expect=3).err
    repository = Repository(bench.root / "a")
    repository.git("init", "--quiet", "--initial-branch", "main")
    commit_all(repository, ["."], "one")
    assert "[unknown-revision] A" in bench.run("measure", "a@none", "a", *BENCHMARK, expect=3).err


@pytest.mark.parametrize("command", ["python3 none.py", "./none"])
def test_m12_a_benchmark_that_is_not_there_is_refused(bench: Bench, command: str) -> None:
    refused = bench.run("measure", "a", "b", "--benchmark", command, expect=3)
    assert "[command-missing] --benchmark" in refused.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a", *BENCHMARK], "two checkouts"),
        (["a", "b"], "say what to run"),
        (["a", "b", *BENCHMARK, "--pairs", "7"], "even"),
        (["a", "b", *BENCHMARK, "--instrument", "sundial"], "is none of reported, wall, cpu"),
        (["a", "b", *BENCHMARK, "--instrument", "reported"], "go together"),
        (["a", "b", *BENCHMARK, "--unit", "s"], "those of --metric"),
    ],
)
def test_m12_wrong_usage_exits_with_2(words: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["measure", *words])
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def sleeping(script: str) -> list[str]:
    """Return the processes that run the script's command."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if script in words and "roundkit" not in words:
            found.append(words)
    return found


def own_sleep(bench: Bench, script: str, seconds: str) -> str:
    """Have a script of both checkouts sleep by a command that is no other test's, and return the command."""
    own = f"sleep {seconds}{os.getpid():07}"
    for side in ("a", "b"):
        (bench.root / side / script).write_text(f"{own}\n")
    return own


def wait_for_line(process: subprocess.Popen[str], said: str) -> None:
    assert process.stderr is not None
    while said not in (line := process.stderr.readline()):
        assert line, "it ended before"


def test_m12_ctrl_c_leaves_a_sentence_no_process_and_no_lease(bench: Bench) -> None:
    own = own_sleep(bench, "sleep.sh", "0.4")
    measuring = bench.start("measure", "a", "b", "--benchmark", "/bin/sh sleep.sh", "--json", "c.json")
    wait_for_line(measuring, "measuring at most")
    while not sleeping(own):
        assert measuring.poll() is None
        time.sleep(0.01)
    assert holders(bench.leases)
    measuring.send_signal(signal.SIGINT)
    _, said = measuring.communicate(timeout=300)
    assert measuring.returncode == 1
    assert "stopped by hand; nothing was kept" in said
    assert "Traceback" not in said
    assert not sleeping(own)
    assert not holders(bench.leases)
    assert not list(bench.temporary.iterdir())
    assert not (bench.root / "c.json").exists()


@pytest.mark.slow
def test_m12_ctrl_c_twice_ends_it_at_once_and_the_next_one_tidies_up(bench: Bench) -> None:
    own = own_sleep(bench, "sleep-long.sh", "600.25")
    measuring = bench.start("measure", "a", "b", "--benchmark", "/bin/sh sleep-long.sh")
    while not sleeping(own):
        assert measuring.poll() is None
        time.sleep(0.05)
    for _ in range(2):
        measuring.send_signal(signal.SIGINT)
        wait_for_line(measuring, "stop")
    measuring.communicate(timeout=300)
    assert measuring.returncode == 1
    while sleeping(own):
        time.sleep(0.05)
    assert not holders(bench.leases)
    bench.run("measure", "a", "b", *BENCHMARK, *METRIC, *SIX, expect=1)


def test_m12_a_core_that_somebody_measures_on_is_refused(bench: Bench) -> None:
    core = str(min(os.sched_getaffinity(0)))
    measuring = bench.start("measure", "a", "b", "--benchmark", "/bin/sh sleep-long.sh", "--cpus", core)
    while not holders(bench.leases):
        assert measuring.poll() is None
        time.sleep(0.05)
    ran = subprocess.run(
        argv("measure", "a", "b", *BENCHMARK, "--cpus", core), cwd=bench.root, env=bench.environment(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    measuring.kill()
    measuring.communicate(timeout=300)
    assert ran.returncode == 3
    assert "[device-busy] --cpus" in ran.stderr


@pytest.mark.slow
def test_m12_noise_says_what_the_benchmark_can_show_and_changes_nothing(bench: Bench) -> None:
    ran = bench.run("noise", "a", *BENCHMARK, *METRIC, *SIX, "--quick", "--json", "n.json", expect=0)
    report = NoiseReport.from_bytes((bench.root / "n.json").read_bytes(), place="n.json")
    found = {row.instrument: row for row in report.instruments}
    assert list(found)[:3] == ["reported", "wall", "cpu"]
    # One run: the clocks were read beside the benchmark's own metric.
    assert len(report.experiments[0].trials) == 14
    assert found["reported"].sigma == 0.0
    for clock in (found["wall"], found["cpu"]):
        if clock.missing is None:
            assert clock.sigma is not None
            assert clock.sigma > 0
            assert [row.gain for row in clock.needed] == [0.01, 0.02, 0.05]
            assert clock.order_low is not None
            assert clock.order_high is not None
            assert clock.order_low <= (clock.order_effect or 0.0) <= clock.order_high
    assert "reported: with 6 pairs this benchmark shows any gain; ab_ba_pairs: 6" in ran.out
    assert "instructions: left out" in ran.out
    for fact in ("CPU governor", "turbo", "SMT siblings", "load", "swap", "huge pages", "ASLR"):
        assert fact in ran.out
    block = ran.out.split("under test_plan:\n")[1]
    pasted = plain(load_yaml(f"test_plan:\n{block}".encode(), place="campaign.yaml"))
    assert Noise.model_validate(pasted["test_plan"]["noise"]) == report.noise
    assert not holders(bench.leases)


@pytest.mark.parametrize("place", ["elsewhere", "a/.venv"])
@pytest.mark.parametrize("options", [[], ["--copies"]])
def test_m12_the_python_of_a_virtual_environment_has_its_packages(
    bench: Bench, place: str, options: list[str]
) -> None:
    environment = bench.root / place
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", *options, environment], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "only_there.py").touch()
    (bench.root / "a/own.py").write_text("import only_there\n" + (bench.root / "a/bench.py").read_text())
    command = f"{environment}/bin/python own.py"
    bench.run("noise", "a", "--benchmark", command, *METRIC, *SIX, "--quick", expect=0)


def test_m12_noise_of_a_benchmark_that_breaks_is_a_sentence(bench: Bench) -> None:
    ran = bench.run("noise", "a", "--benchmark", "/bin/sh quiet.sh", *METRIC, *SIX, expect=1)
    assert "the benchmark cannot be measured: baseline-result" in ran.err


@pytest.mark.slow
def test_m12_instructions_decide_and_have_a_noise_of_their_own(bench: Bench) -> None:
    (bench.root / "b" / "prog.py").write_text(FAST)
    counted = ("--instrument", "instructions")
    ran = bench.run(
        "measure", "a", "b", *BENCHMARK, *counted, *SIX, "--json", "c.json", "--html", "c.html", expect=0
    )
    assert "instructions say nothing about caches" in ran.out
    page = (bench.root / "c.html").read_text()
    assert "instructions say nothing about caches" in page
    saved = comparison(bench, "c.json")
    assert disagreements(saved) == ()
    if saved.run_spec.counting_tool == "valgrind":
        assert saved.verdict.forgeable
        assert "Forgeable: valgrind counts" in ran.out
        assert "Counted by valgrind, forgeable" in page
    ran = bench.run("noise", "a", *BENCHMARK, *SIX, "--json", "n.json", expect=0)
    report = NoiseReport.from_bytes((bench.root / "n.json").read_bytes(), place="n.json")
    found = {row.instrument: row for row in report.instruments}
    assert found["instructions"].pairs == 6
    assert found["instructions"].sigma is not None
    assert found["instructions"].sigma < 1e-3
    if found["peak-memory"].missing is None:
        assert found["peak-memory"].pairs == 6
        assert len(report.experiments) == 3
    assert "instructions say nothing about caches" in ran.out
