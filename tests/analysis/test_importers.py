"""M12: files of pyperf and hyperfine as frames, with errors that name the file and the key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyperf
import pytest

from roundkit.analysis.importers import SAMPLES, read_hyperfine, read_pyperf
from roundkit.core.errors import Refused

HYPERFINE = Path(__file__).parent / "files" / "hyperfine.json"
COLUMNS = {column.name: column.dtype for column in SAMPLES}


@pytest.fixture
def pyperf_file(tmp_path: Path) -> Path:
    """Two benchmarks as pyperf itself writes them, with what they share at the top."""
    shared = {"unit": "second", "loops": 4}
    benchmarks = [
        pyperf.Benchmark(
            [
                pyperf.Run([0.5, 0.25], warmups=[(4, 1.0)], metadata={**shared, "name": name}),
                pyperf.Run([0.125], metadata={**shared, "name": name}),
            ]
        )
        for name in ("parse", "render")
    ]
    pyperf.BenchmarkSuite(benchmarks).dump(str(tmp_path / "suite.json"))
    return tmp_path / "suite.json"


def test_m12_pyperf_files_become_a_frame_with_warm_ups_marked(pyperf_file: Path) -> None:
    frame = read_pyperf(pyperf_file)
    assert dict(frame.schema) == COLUMNS
    assert frame["source"].unique().to_list() == ["suite.json"]
    parse = frame.filter(pl.col("benchmark") == "parse")
    assert parse.select("run", "position", "warmup", "value").rows() == [
        (0, 0, True, 1.0),
        (0, 1, False, 0.5),
        (0, 2, False, 0.25),
        (1, 0, False, 0.125),
    ]
    assert frame["unit"].unique().to_list() == ["second"]
    assert frame["exit_code"].null_count() == frame.height


def test_m12_a_file_that_hyperfine_wrote_becomes_a_frame() -> None:
    frame = read_hyperfine(HYPERFINE)
    assert dict(frame.schema) == COLUMNS
    assert frame.group_by("benchmark", maintain_order=True).len().rows() == [
        ("sleep 0.001", 4),
        ("sleep 0.002", 4),
    ]
    assert frame["run"].to_list() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert frame["exit_code"].to_list() == [0] * 8
    written = json.loads(HYPERFINE.read_bytes())["results"]
    assert frame["value"].to_list() == [time for result in written for time in result["times"]]


def test_m12_a_file_of_an_older_hyperfine_has_no_exit_codes(tmp_path: Path) -> None:
    frame = read_hyperfine(edited(HYPERFINE, tmp_path, lambda file: file["results"][1].pop("exit_codes")))
    assert frame["exit_code"].to_list() == [0, 0, 0, 0, None, None, None, None]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda file: file.pop("results"), "[import-key] odd.json: the key 'results' is missing"),
        (lambda file: file["results"][1].pop("times"), "odd.json.results[1]: the key 'times' is missing"),
        (
            lambda file: file["results"][0].update(command=3),
            "odd.json.results[0].command: here belongs a text",
        ),
        (lambda file: file["results"][0]["times"].append("1"), "odd.json.results[0].times[4]"),
        (lambda file: file["results"][0]["exit_codes"].pop(), "odd.json.results[0].exit_codes"),
        (lambda file: file["results"].append(None), "odd.json.results[2]: the key 'command' is missing"),
    ],
)
def test_m12_a_broken_hyperfine_file_names_file_and_key(
    tmp_path: Path, edit: Callable[[Any], object], said: str
) -> None:
    with pytest.raises(Refused) as refused:
        read_hyperfine(edited(HYPERFINE, tmp_path, edit))
    assert said in str(refused.value)
    assert "hyperfine wrote" in str(refused.value)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda file: file.pop("version"), "[import-key] odd.json: the key 'version' is missing"),
        (lambda file: file.update(version="0.5"), "[import-version] odd.json.version"),
        (lambda file: file.update(benchmarks={}), "odd.json.benchmarks: here belongs a list"),
        (lambda file: file["benchmarks"][0].pop("runs"), "odd.json.benchmarks[0]: the key 'runs' is missing"),
        (
            lambda file: file["benchmarks"][1]["metadata"].pop("name"),
            "benchmarks[1].metadata: the key 'name'",
        ),
        (
            lambda file: file["benchmarks"][0]["runs"][1].update(values=[None]),
            "benchmarks[0].runs[1].values[0]",
        ),
    ],
)
def test_m12_a_broken_pyperf_file_names_file_and_key(
    pyperf_file: Path, tmp_path: Path, edit: Callable[[Any], object], said: str
) -> None:
    with pytest.raises(Refused) as refused:
        read_pyperf(edited(pyperf_file, tmp_path, edit))
    assert said in str(refused.value)


def test_m12_a_file_that_is_missing_or_no_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text("Time (mean ± σ): 3 ms")
    for read in (read_pyperf, read_hyperfine):
        with pytest.raises(Refused, match="missing-file"):
            read(tmp_path / "none.json")
        with pytest.raises(Refused, match="malformed"):
            read(tmp_path / "text.json")


def edited(source: Path, folder: Path, edit: Callable[[Any], object]) -> Path:
    """Write a file with one change to ``odd.json``."""
    content = json.loads(source.read_bytes())
    edit(content)
    (folder / "odd.json").write_text(json.dumps(content))
    return folder / "odd.json"
