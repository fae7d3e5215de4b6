"""N11: ledgers of other tools in the declared frames; what a tool decided stays a claim.

``files/openevolve/checkpoint_3`` was written by the ``ProgramDatabase`` of openevolve 0.4.1 from PyPI, given
four programs and their scores in place of a model. Files of results.tsv are written by agents, following the
format that autoresearch's ``program.md`` describes; the ones here are written by hand after it.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pyperf
import pytest

from roundkit.analysis import charts, importers, load, write_frames
from roundkit.core.errors import Refused

FILES = Path(__file__).parent / "files"
TSV = """commit\tval_bpb\tmemory_gb\tstatus\tdescription
a1b2c3d\t1.2500\t44.0\tkeep\tbaseline
b2c3d4e\t1.0000\t44.2\tkeep\tlarger "learning" rate
b2c3d4e\t1.1000\t44.0\tdiscard\tanother activation
c3d4e5f\t0.0000\t0.0\tcrash\twider model, out of memory

d4e5f6a\t0.8000\t40.0\tkeep\t=1+1
"""


@pytest.fixture
def tsv(tmp_path: Path) -> Path:
    (tmp_path / "results.tsv").write_text(TSV)
    return tmp_path / "results.tsv"


def test_n11_a_results_tsv_becomes_tickets(tsv: Path) -> None:
    frames = importers.read_results_tsv(tsv)
    tickets = frames["tickets"].collect()
    columns = (
        "ticket",
        "verdict",
        "reason",
        "gain",
        "missing",
        "baseline_median",
        "candidate_median",
        "selected",
    )
    assert tickets.select(columns).rows() == [
        ("0001-a1b2c3d", "not-measured", "kept", None, "nothing was kept before it", None, 1.25, True),
        ("0002-b2c3d4e", "not-measured", "kept", pytest.approx(0.2), None, 1.25, 1.0, True),
        ("0003-b2c3d4e", "not-measured", "discarded", pytest.approx(-0.1), None, 1.0, 1.1, False),
        ("0004-c3d4e5f", "fail", "crashed", None, "crashed", 1.0, None, False),
        ("0005-d4e5f6a", "not-measured", "kept", pytest.approx(0.2), None, 1.0, 0.8, True),
    ]
    (row,) = frames["rounds"].collect().to_dicts()
    assert (row["state"], row["metric"], row["direction"], row["gain"]) == (
        "imported",
        "val_bpb",
        "lower",
        None,
    )


def test_n11_descriptions_of_a_results_tsv_may_hold_anything_but_tabs_and_line_feeds(tsv: Path) -> None:
    said = "a\u2028b\x0cc\x00d " + "x" * 200_000
    tsv.write_bytes(b"\xef\xbb\xbf" + TSV.replace("baseline", said).replace("\n", "\r\n").encode())
    tickets = importers.read_results_tsv(tsv)["tickets"].collect()
    assert tickets.height == 5
    assert tickets["sentence"][0] == said


def test_n10_a_ratio_beyond_all_numbers_is_no_gain(tsv: Path) -> None:
    tsv.write_text(TSV.replace("1.0000", "1e-320").replace("1.1000", "1e308"))
    tickets = importers.read_results_tsv(tsv)["tickets"].collect()
    assert tickets["gain"].to_list()[2] is None
    assert tickets["missing"].to_list()[2] == "a ratio of these values has no meaning"


def test_n11_another_metric_and_direction(tsv: Path) -> None:
    frames = importers.read_results_tsv(tsv, metric="memory_gb", direction="higher", campaign="c", name="n")
    tickets = frames["tickets"].collect()
    assert tickets["gain"].to_list()[1] == pytest.approx(1 - 44.0 / 44.2)
    assert set(tickets["campaign"]) == {"c"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("val_bpb", "x\ty"), "5 columns where the header has 6"),
        (("status", "state"), "[import-key] results.tsv:1: the column 'status' is missing"),
        (("1.1000", "much"), "results.tsv:4: 'much' is no number"),
        (("1.1000", "nan"), "results.tsv:4: 'nan' is no number"),
        (("discard", "maybe"), "results.tsv:4: 'maybe' is no status"),
        ((TSV, ""), "the file is empty"),
        (("memory_gb", "val_bpb"), "[import-key] results.tsv:1: the column 'val_bpb' stands there twice"),
        (("1.1000", "1_000"), "results.tsv:4: '1_000' is no number"),
    ],
)
def test_n11_a_broken_results_tsv_names_the_line(tsv: Path, change: tuple[str, str], said: str) -> None:
    tsv.write_text(TSV.replace(*change))
    with pytest.raises(Refused) as refused:
        importers.read_results_tsv(tsv)
    assert said in str(refused.value)


def test_n11_a_checkpoint_that_openevolve_wrote_becomes_tickets() -> None:
    frames = importers.read_openevolve(FILES / "openevolve" / "checkpoint_3")
    tickets = frames["tickets"].collect()
    columns = ("lane", "reason", "gain", "missing", "candidate_median", "selected", "sentence")
    assert tickets.select(columns).rows() == [
        ("island-0", "evaluated", None, "it has no parent", 0.5, False, None),
        ("island-0", "best", pytest.approx(0.375), None, 0.8, True, "change 1"),
        ("island-1", "evaluated", None, "a ratio of scores at or below zero", 0.0, False, "change 2"),
        ("island-1", "evaluated", pytest.approx(1 - 0.8 / 0.625), None, 0.625, False, "change 3"),
    ]
    assert tickets["intake_utc"].is_sorted()
    assert frames["lanes"].collect()["tickets"].to_list() == [2, 2]


def test_n11_a_broken_checkpoint_names_file_and_key(tmp_path: Path) -> None:
    broken = tmp_path / "checkpoint_3"
    shutil.copytree(FILES / "openevolve" / "checkpoint_3", broken)
    program = next((broken / "programs").iterdir())
    document = json.loads(program.read_bytes())
    program.write_text(json.dumps({**document, "metrics": 3}))
    with pytest.raises(Refused, match=r"\[import-value\] programs/.*\.json\.metrics: here belongs an object"):
        importers.read_openevolve(broken)
    shutil.rmtree(broken / "programs")
    with pytest.raises(Refused, match="the checkpoint has no program"):
        importers.read_openevolve(broken)


@pytest.mark.parametrize("score", ["NaN", "Infinity", "-Infinity", f"1{'0' * 400}", "null", '"much"'])
def test_n10_a_score_that_is_no_number_is_missing_with_its_reason(tmp_path: Path, score: str) -> None:
    checkpoint = tmp_path / "checkpoint_3"
    shutil.copytree(FILES / "openevolve" / "checkpoint_3", checkpoint)
    for program in (checkpoint / "programs").iterdir():
        program.write_text(program.read_text().replace("0.625", score))
    tickets = importers.read_openevolve(checkpoint)["tickets"].collect()
    row = tickets.filter(pl.col("sentence") == "change 3")
    assert row.select("candidate_median", "gain", "missing").rows() == [(None, None, "no finite score")]


@pytest.mark.parametrize("time", ["1e30", "-1e300", f"1{'0' * 400}", "NaN", "true"])
def test_n11_a_time_that_no_clock_shows_is_named(tmp_path: Path, time: str) -> None:
    checkpoint = tmp_path / "checkpoint_3"
    shutil.copytree(FILES / "openevolve" / "checkpoint_3", checkpoint)
    program = next((checkpoint / "programs").iterdir())
    program.write_text(re.sub(r'"timestamp": [0-9.]+', f'"timestamp": {time}', program.read_text()))
    with pytest.raises(Refused, match=r"\[import-value\] programs/.*\.json\.timestamp"):
        importers.read_openevolve(checkpoint)


def test_n05_half_a_character_becomes_visible(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"s": "\\ud800 <script>\\u001b[31m"}')
    tickets = importers.read_jsonl(tmp_path / "log.jsonl", {"sentence": "s"}).collect()
    assert tickets["sentence"].to_list() == ["\N{REPLACEMENT CHARACTER} <script>\x1b[31m"]
    (tmp_path / "h.json").write_text('{"results": [{"command": "\\udfff", "times": [1]}]}')
    assert importers.read_hyperfine(tmp_path / "h.json")["benchmark"].to_list() == [
        "\N{REPLACEMENT CHARACTER}"
    ]


def test_n11_json_lines_by_a_map_of_columns(tmp_path: Path) -> None:
    lines = [
        {"id": "t1", "result": {"gain": 0.25, "at": "2026-03-02T10:00:00+01:00"}, "agent": "one", "n": 1},
        {"id": "t2", "result": {"gain": None}, "agent": "two", "n": 2},
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    columns = {
        "ticket": "id", "lane": "agent", "gain": "result.gain", "intake_utc": "result.at", "sequence": "n",
    }  # fmt: skip
    tickets = importers.read_jsonl(path, columns).collect()
    assert tickets.select("campaign", "round", "lane", "ticket", "gain", "sequence").rows() == [
        ("jsonl", "log", "one", "t1", 0.25, 1),
        ("jsonl", "log", "two", "t2", None, 2),
    ]
    assert str(tickets["intake_utc"][0]) == "2026-03-02 09:00:00+00:00"
    trials = importers.read_jsonl(path, {"experiment": "id", "position": "n"}, table="trials").collect()
    assert trials["experiment"].to_list() == ["t1", "t2"]


@pytest.mark.parametrize(
    ("line", "columns", "said"),
    [
        ('{"a": "x"}', {"gain": "a"}, "[import-value] log.jsonl:1: a: 'x' is no finite number"),
        ('{"a": 1.5}', {"pairs": "a"}, "1.5 is no whole number of 64 bits"),
        ('{"a": true}', {"gain": "a"}, "True is no finite number"),
        ('{"a": "2026-03-02T10:00:00"}', {"intake_utc": "a"}, "has no timezone"),
        ("{", {"gain": "a"}, "log.jsonl:1"),
        (f'{{"a": 1{"0" * 400}}}', {"gain": "a"}, "is no finite number"),
        (f'{{"a": {2**63}}}', {"pairs": "a"}, "is no whole number of 64 bits"),
        ('{"a": "0001-01-01T00:00:00+14:00"}', {"intake_utc": "a"}, "is no time that a clock shows"),
        ('{"a": [1, null]}', {"sentence": "a"}, "does not fit String"),
        ("{}", {"gian": "a"}, "[unknown-columns] columns: the frame tickets has no gian"),
    ],
)
def test_n11_a_line_that_does_not_fit_is_named(
    tmp_path: Path, line: str, columns: dict[str, str], said: str
) -> None:
    (tmp_path / "log.jsonl").write_text(line)
    with pytest.raises(Refused) as refused:
        importers.read_jsonl(tmp_path / "log.jsonl", columns)
    assert said in str(refused.value)


def test_n11_samples_become_trials(tmp_path: Path) -> None:
    run = pyperf.Run([0.5, 0.25, 0.75], warmups=[(1, 9.0)], metadata={"name": "parse", "unit": "second"})
    pyperf.Benchmark([run]).dump(str(tmp_path / "b.json"))
    trials = importers.as_trials(importers.read_pyperf(tmp_path / "b.json")).collect()
    assert trials.select("campaign", "round", "experiment", "purpose", "value").rows() == [
        ("pyperf", "b.json", "parse", "imported", 0.5)
    ]
    assert trials["samples"].to_list() == [[0.5, 0.25, 0.75]]
    hyperfine = importers.as_trials(importers.read_hyperfine(FILES / "hyperfine.json"), name="h").collect()
    assert hyperfine.height == 8
    assert hyperfine["problem"].null_count() == 8


def test_n11_what_was_imported_stands_beside_rounds_and_is_drawn(tsv: Path, tmp_path: Path) -> None:
    write_frames(importers.read_results_tsv(tsv), tmp_path / "imported" / "tsv")
    write_frames(
        importers.read_openevolve(FILES / "openevolve" / "checkpoint_3"), tmp_path / "imported" / "oe"
    )
    ledgers = load(tmp_path / "imported")
    assert ledgers.contents().filter(table="tickets")["rows"].to_list() == [9]
    charts.branch_layout(ledgers.lanes, ledgers.tickets).to_dict()
    charts.verdict_counts(ledgers.tickets).to_dict()
    charts.gain_distribution(ledgers.tickets).to_dict()
    more = ledgers.add(tickets=importers.read_results_tsv(tsv, name="again")["tickets"])
    assert more.tickets.collect().height == 14
    assert ledgers.only("openevolve").tickets.collect().height == 4
