"""M12: options of ``measure`` and ``noise`` that would be misread are refused; messages name what helps."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from support.checkouts import BENCHMARK, METRIC, PYTHON, SIX, Bench, two_alike
from support.command_line import run_roundkit
from support.tools import needs_peak_memory
from typer.testing import CliRunner

from roundkit.cli.app import app
from roundkit.cli.compare_tables import show_comparison
from roundkit.core.errors import RoundkitError
from roundkit.models.comparison import Comparison, NoiseReport
from roundkit.report import comparison_page
from roundkit.rounds.compare.workplace import workplace
from roundkit.rules.comparison import recomputed
from roundkit.rules.run_spec import comparison_run_spec


@pytest.fixture
def bench(open_folder: Path) -> Bench:
    return two_alike(open_folder)


TWELVE = ("--pairs", "12", "--all-pairs")
"""So many that no draw of theirs hides how far they scatter."""


def usage(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 2
    return " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("command", "operator"),
    [
        ("make && ./run", "&&"),
        ("cat x | sort", "|"),
        ("./run > out", ">"),
        ("./run; ./run", ";"),
        ("./run $(nproc)", "$("),
        ("./run $HOME", "$HOME"),
        ("./run `nproc`", "`"),
    ],
)
def test_m12_a_command_that_takes_a_shell_is_told_to_name_one(command: str, operator: str) -> None:
    said = usage("measure", "a", "b", "--benchmark", command)
    assert f"no shell reads it, so '{operator}' would be" in said
    assert f"sh -c '{command}'" in said
    assert "no shell reads it" in usage("measure", "a", "b", "--benchmark", "./run", "--build", command)


@pytest.mark.parametrize("command", ["sh -c 'a && b'", 'awk "/a|b/"', "./run a\\;b", "grep 'x > y'"])
def test_m12_operators_in_quotes_are_arguments(command: str, bench: Bench) -> None:
    ran = bench.run("measure", "a", "none", "--benchmark", command, expect=3)
    assert "[side-missing] B" in ran.err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("a", "b"), "leave A, B out"),
        (("--pairs", "8"), "leave --pairs out"),
        (("--all-pairs", "--min-gain", "0.1"), "leave --min-gain, --all-pairs out"),
        (("--timeout", "3", "--cpus", "0"), "leave --cpus, --timeout out"),
    ],
)
def test_m12_nothing_that_measures_goes_with_from(words: tuple[str, ...], named: str) -> None:
    assert named in usage("measure", *words, "--from", "c.json")


def test_m12_two_outputs_in_one_file_are_refused(bench: Bench) -> None:
    for words in (("--json", "x", "--html", "x"), ("--json", "x", "--pyperf", "./x")):
        assert "[same-file]" in bench.run("measure", "a", "b", *BENCHMARK, *words, expect=3).err
    assert "[same-file] --html" in bench.run("measure", "--from", "x", "--html", "x", expect=3).err


def test_m12_options_that_say_something_else_than_they_seem_are_refused(bench: Bench) -> None:
    words = ("--cpus", "0,0", "--protect", "/etc/*", "--protect", "../other/**")
    said = bench.run("measure", "a", "b", *BENCHMARK, *words, expect=3).err
    assert "[device-twice] --cpus: core 0 is named twice" in said
    assert "[protect-outside] --protect: '/etc/*' lies outside" in said
    assert "'../other/**' lies outside" in said


def test_m12_a_package_that_is_not_there_names_the_option(bench: Bench) -> None:
    said = bench.run("measure", "a", "b", *BENCHMARK, *METRIC, "--package", "nopkg", expect=3).err
    assert "[package-missing] --package: the baseline does not give the package 'nopkg'" in said
    assert "→ name a package that lies" in said


def test_m12_a_command_that_runs_out_of_time_names_the_option(bench: Bench) -> None:
    slow = ("--benchmark", "/bin/sh sleep.sh", "--timeout", "0.1")
    ran = bench.run("measure", "a", "b", *slow, *SIX, expect=1)
    assert "invalid: baseline-overrun" in ran.out
    assert "may take 0.1 s; --timeout gives it more" in ran.out
    assert "--timeout gives it more" in bench.run("noise", "a", *slow, *SIX, expect=1).err


@pytest.mark.slow
def test_m12_where_wall_time_cannot_tell_the_quieter_clock_is_named(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    (bench.root / "b" / "prog.py").write_text("# changed\n")
    words = ("measure", "a", "b", "--benchmark", f"{PYTHON} restless.py", *TWELVE, "--json", "c.json")
    run_roundkit(*words, cwd=bench.root, env=bench.environment())
    saved = Comparison.from_bytes((bench.root / "c.json").read_bytes(), place="c.json")

    def said(verdict: str, instrument: str = "wall") -> str:
        benchmark = saved.run_spec.benchmark.model_copy(update={"instrument": instrument})
        changed = {
            "verdict": saved.verdict.model_copy(update={"verdict": verdict}),
            "run_spec": saved.run_spec.model_copy(update={"benchmark": benchmark}),
        }
        show_comparison(saved.model_copy(update=changed))
        return capsys.readouterr().out

    told = said("not-measured")
    assert "far less noisy here: with 12 pairs `cpu` shows a gain of" in told
    assert "measure anew with --instrument cpu" in told
    assert "far less noisy" not in said("not-measured", "cpu")
    assert "far less noisy" not in said("pass")


@pytest.mark.slow
def test_m12_noise_says_what_the_quieter_clock_leaves_out(bench: Bench) -> None:
    restless = ("--benchmark", f"{PYTHON} restless.py")
    ran = bench.run("noise", "a", *restless, *TWELVE[:2], "--quick", expect=0)
    assert "`cpu` adds up the work of all processes and threads, and leaves out waiting" in ran.out


def test_m12_a_full_disk_names_the_folder_and_the_variable() -> None:
    with pytest.raises(RoundkitError, match=r"copies in .*roundkit-measure-.*TMPDIR"), workplace():
        raise OSError(errno.ENOSPC, "No space left on device")


def test_m12_an_unknown_driver_is_a_sentence(tmp_path: Path) -> None:
    said = usage("launch", str(tmp_path), "--drive", "nobody")
    assert "nothing here drives 'nobody': name claude, codex," in said
    assert "Value error" not in said
    said = usage("serve", str(tmp_path), "--pool", "dsk")
    assert "'dsk' is not one of 'local'" in said
    assert "Value error" not in said


def test_m13_noise_speaks_of_the_pairs_asked_for(bench: Bench) -> None:
    ran = bench.run("noise", "a", *BENCHMARK, *METRIC, "--pairs", "8", "--quick", expect=0)
    assert "reported: with 8 pairs this benchmark shows any gain; ab_ba_pairs: 8" in ran.out
    assert "candidate" not in ran.err


@needs_peak_memory
@pytest.mark.slow
def test_m13_peak_memory_decides_outside_a_round_and_has_a_noise_of_its_own(bench: Bench) -> None:
    bench.add("large", bench_py="", prog_py="held = bytearray(b'x' * (64 << 20))\nfind = lambda wanted: 1\n")
    peak = ("--instrument", "peak-memory")
    ran = bench.run(
        "measure", "large", "a", "--benchmark", f"{PYTHON} -c 'import prog'", *peak, *SIX, expect=0
    )
    assert "gain in peak_memory_bytes" in ran.out
    bench.run("noise", "a", *BENCHMARK, *peak, *SIX, "--quick", "--json", "n.json", expect=0)
    report = NoiseReport.from_bytes((bench.root / "n.json").read_bytes(), place="n.json")
    assert report.noise is not None
    assert report.noise.instrument == "peak-memory"


def test_m13_a_count_by_valgrind_is_labelled_wherever_it_decides(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    from roundkit.analysis.charts import pair_gains

    bench.run("measure", "a", "b", *BENCHMARK, *METRIC, *SIX, "--json", "c.json", expect=1)
    saved = Comparison.from_bytes((bench.root / "c.json").read_bytes(), place="c.json")
    plan = saved.plan.model_copy(
        update={
            "counting_tool": "valgrind",
            "benchmark": saved.plan.benchmark.model_copy(update={"instrument": "instructions"}),
        }
    )
    counted = saved.model_copy(update={"plan": plan, "run_spec": comparison_run_spec(plan)})
    counted = counted.model_copy(update={"verdict": recomputed(counted)})
    show_comparison(counted)
    assert "Forgeable: valgrind counts" in capsys.readouterr().out
    assert counted.to_json_value()["verdict"]["forgeable"] is True
    assert "Counted by valgrind, forgeable" in comparison_page(counted, pair_gains(counted))
