"""The runner of ``make bench`` on sizes that say nothing about speed: nothing here asserts a time."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from bench import result, utilization
from bench.__main__ import BENCHMARKS, main, run
from bench.result import Figure, ratio_interval, read_result
from bench.table import BEGIN, END, rewrite

LONG = {"aa", "coordinator", "fleet", "frames", "instruments", "materialize", "startup"}
BEFORE, AFTER = "# Speed\n\nwords before\n", "\nwords after\n"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    document = tmp_path / "performance.md"
    document.write_text(f"{BEFORE}{BEGIN}\nan older table\n{END}{AFTER}")
    return document


@pytest.mark.skipif(sys.platform != "linux", reason="rounds run on Linux")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in LONG else name
        for name in sorted(set(BENCHMARKS) - {"utilization"})
    ],
)
def test_a_benchmark_runs_on_a_tiny_size(name: str, tmp_path: Path) -> None:
    done = run(name, tiny=True)
    assert (done.benchmark, done.size) == (name, "tiny")
    assert done.figures
    assert all(math.isfinite(figure.value) for figure in done.figures)
    assert done.machine.load_before[0] >= 0
    assert done.machine.cpu_model
    assert read_result(done.write(tmp_path)).figures[0].name == done.figures[0].name


def test_main_writes_json_and_the_table_between_the_markers(docs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["scope", "--tiny", "--out", str(out), "--docs", str(docs)]) == 0
    document = json.loads((out / "scope.json").read_bytes())
    assert document["figures"][0]["target"] == 3.0
    text = docs.read_text()
    assert text.startswith(BEFORE)
    assert text.endswith(AFTER)
    assert "an older table" not in text
    assert "size tiny" in text
    assert "`make bench ROWS=scope`" in text


def test_the_table_comes_from_the_json_alone(docs: Path, tmp_path: Path) -> None:
    done = run("scope", tiny=True)
    figures = (
        Figure("a", "a missed one", 1.6, "x", 1.5, detail={"interval": [1.5, 1.75]}),
        Figure("b", "one that is met", 98.25, "%", 97.0, "higher"),
        Figure("n", "one that is near", 0.995, "x", 1.01, "near"),
        Figure("f", "one that is not", 0.98, "x", 1.01, "near"),
        Figure("c", "one that is only shown", 1234.5, "ms"),
    )
    replace(done, benchmark="made", figures=figures, size="full").write(tmp_path / "out")
    rewrite(docs, tmp_path / "out")
    first = docs.read_text()
    assert "| a missed one | 1.6 × (1.5–1.75) | ≤ 1.5 × | **no** |" in first
    assert "| one that is met | 98.2 % | ≥ 97 % | yes |" in first
    assert "| one that is near | 0.995 × | 0.99–1.01 × | yes |" in first
    assert "| one that is not | 0.98 × | 0.99–1.01 × | **no** |" in first
    assert "| one that is only shown | 1234 ms | — | — |" in first
    rewrite(docs, tmp_path / "out")
    assert docs.read_text() == first


def test_what_was_not_measured_again_stays_in_the_table(docs: Path, tmp_path: Path) -> None:
    done = run("scope", tiny=True)
    for folder, name, value in (("before", "one", 1.0), ("before", "two", 2.0), ("after", "one", 3.0)):
        figures = (Figure("a", f"{name}, first", value, "x"), Figure("b", f"{name}, second", value, "x"))
        again = replace(done, benchmark=name, command=f"make bench ROWS={name}", figures=figures)
        again.write(tmp_path / folder)
    rewrite(docs, tmp_path / "before")
    before = docs.read_text()
    rewrite(docs, tmp_path / "after")
    assert docs.read_text() == before.replace(" | 1 × |", " | 3 × |")
    assert before.count("\n| one, ") == before.count("\n| two, ") == 2
    assert before.count("\n- one: ") == before.count("\n- two: ") == 1


def test_a_document_without_markers_is_left_alone(tmp_path: Path) -> None:
    document = tmp_path / "other.md"
    document.write_text("nothing here\n")
    with pytest.raises(ValueError, match="no markers"):
        rewrite(document, tmp_path)
    assert document.read_text() == "nothing here\n"


def test_an_unknown_benchmark_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["speed"])
    assert ended.value.code == 2
    assert "there is no benchmark speed" in capsys.readouterr().err


def test_the_interval_of_ratios_holds_their_median() -> None:
    ours, theirs = [2.0, 2.2, 1.8, 2.1, 1.9, 2.0], [1.0] * 6
    median, low, high = ratio_interval(ours, theirs)
    assert low <= median <= high
    assert ratio_interval([3.0], [2.0]) == (1.5, 1.5, 1.5)


def test_overlap_of_intervals() -> None:
    assert utilization.overlap((0.0, 4.0), (1.0, 3.0)) == 2.0
    assert utilization.overlap((2.0, 4.0), (1.0, 3.0)) == 1.0
    assert utilization.overlap((4.0, 5.0), (1.0, 3.0)) == 0.0


def test_variables_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUNDKIT_BENCH_A", "before")
    monkeypatch.delenv("ROUNDKIT_BENCH_B", raising=False)
    with result.environment({"ROUNDKIT_BENCH_A": "x", "ROUNDKIT_BENCH_B": "y"}):
        assert (os.environ["ROUNDKIT_BENCH_A"], os.environ["ROUNDKIT_BENCH_B"]) == ("x", "y")
    assert os.environ["ROUNDKIT_BENCH_A"] == "before"
    assert "ROUNDKIT_BENCH_B" not in os.environ


def test_the_committed_table_names_only_benchmarks_that_exist() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "performance.md").read_text()
    named = set(re.findall(r"`make bench ROWS=([a-z]+)`", text))
    assert named
    assert named <= set(BENCHMARKS)
