"""The commands on frames and notebooks, as a person types them."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.sample_evidence import export_sample, sample_round
from typer.testing import CliRunner

from roundkit.analysis import TABLES
from roundkit.cli.app import app
from roundkit.core.errors import Refused

RUNNER = CliRunner()
RESULTS = "commit\tval_bpb\tstatus\tdescription\na\t1.0\tkeep\tbaseline\nb\t0.9\tkeep\tbetter\n"


def said(*words: str | Path, expect: int = 0) -> str:
    done = RUNNER.invoke(app, [str(word) for word in words])
    assert done.exit_code == expect, done.output
    return done.output


def refused(*words: str | Path) -> str:
    done = RUNNER.invoke(app, [str(word) for word in words])
    assert isinstance(done.exception, Refused), done.output
    assert done.exception.exit_code == 3
    return str(done.exception)


def test_schema_tells_type_unit_and_meaning_of_every_column() -> None:
    for table in TABLES:
        rows = json.loads(said("schema", table, "--json"))
        assert [row["column"] for row in rows] == [column.name for column in TABLES[table]]
        assert all(row["meaning"] and row["type"] for row in rows)
    assert "one row a lane" in said("schema")
    assert "trials" in refused("schema", "trial")


def test_export_writes_frames_and_overwrites_nothing(tmp_path: Path) -> None:
    export_sample(tmp_path / "campaign" / "r01", sample_round(), tmp_path / "scratch")
    out = tmp_path / "out"
    words = ("export", tmp_path / "campaign", "--out", out, "--format", "csv", "--table", "tickets")
    assert said(*words).split() == [str(out / "tickets.csv")]
    assert len(list(csv.DictReader((out / "tickets.csv").open()))) == 9
    assert "[exists]" in refused(*words)
    assert "[no-ledger]" in refused("export", tmp_path / "none", "--out", tmp_path / "o2")


EVIDENCE = Path(__file__).resolve().parents[2] / "evidence"


def test_export_writes_frames_of_pilots_and_campaigns_beside_those_of_rounds(tmp_path: Path) -> None:
    said("export", EVIDENCE, "--out", tmp_path / "all", "--format", "json")
    rows = {path.stem: json.loads(path.read_bytes()) for path in (tmp_path / "all").iterdir()}
    assert {"rounds", "tickets", "pilot_tuples", "policy_runs", "waves", "wave_shards"} <= rows.keys()
    assert len(rows["pilot_tuples"]) == 18
    assert {row["campaign"] for row in rows["pilot_tuples"]} == {"agent-task-comparison"}
    assert {row["tag"] for row in rows["waves"]} == {f"{number:04d}" for number in range(1, 6)}
    runs = {row["run"]: row for row in rows["policy_runs"]}
    assert len(runs) == len(rows["policy_runs"]) == 6
    for path in (EVIDENCE / "knobs/pilots/p-versus-s/runs").iterdir():
        record = json.loads((path / "record.json").read_bytes())
        row = runs[record["run_id"]]
        for name in ("arm", "order", "process", "end", "target_s", "wall_s", "final_gain", "device_hours"):
            assert row[name] == record[name], name
        assert (row["campaign"], row["pilot"], row["provenance"]) == ("knobs", "p-versus-s", "scripted")
        assert row["state"] == ("censored" if record["censored"] else "reached")
        assert row["started_utc"] < row["launched_utc"] < row["ended_utc"]
        assert row["charged_wall_s"] == record["charged"]["wall_s"]
    for table, found in rows.items():
        assert list(found[0]) == [row["column"] for row in json.loads(said("schema", table, "--json"))]


def test_export_of_one_campaign_alone_and_of_its_export(tmp_path: Path) -> None:
    said("export", EVIDENCE / "c-functions", "--out", tmp_path / "one")
    assert (tmp_path / "one" / "waves.parquet").exists()
    said("export", tmp_path / "one", EVIDENCE / "agent-task-comparison", "--out", tmp_path / "two")
    assert {"waves.parquet", "pilot_tuples.parquet"} <= {path.name for path in (tmp_path / "two").iterdir()}
    words = ("--table", "pilot_checks", "--out", tmp_path / "checks")
    said("export", EVIDENCE / "agent-task-comparison", *words)
    assert [path.name for path in sorted((tmp_path / "checks").iterdir())] == [
        "frames.json", "pilot_checks.parquet",
    ]  # fmt: skip
    assert "pilot_calls" in refused("export", EVIDENCE, "--table", "pilot_call", "--out", tmp_path / "no")


def test_a_pilot_that_cannot_be_read_is_told_or_left_out(tmp_path: Path) -> None:
    export_sample(tmp_path / "c" / "r01", sample_round(), tmp_path / "scratch")
    (tmp_path / "c" / "pilot").mkdir()
    (tmp_path / "c" / "pilot" / "plan.json").write_text('{"kind": "paired"}')
    assert "[malformed]" in refused("export", tmp_path / "c", "--out", tmp_path / "out")
    output = said("export", tmp_path / "c", "--out", tmp_path / "out", "--skip-broken")
    assert "left out: pilot: [malformed]" in output


def test_export_into_the_folder_that_one_works_in_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_sample(tmp_path / "c" / "r01", sample_round(), tmp_path / "scratch")
    (tmp_path / "empty" / "inside").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "empty" / "inside")
    for place in (".", "..", "/"):
        assert "[exists]" in refused("export", tmp_path / "c", "--out", place)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert "[exists]" in refused("export", tmp_path / "c", "--out", tmp_path / "link")
    (tmp_path / "free").mkdir()
    said("export", tmp_path / "c", "--out", tmp_path / "free", "--table", "rounds")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "empty", "free", "link", "scratch"]


def test_an_export_is_read_back_from_a_folder_of_any_name(tmp_path: Path) -> None:
    export_sample(tmp_path / "c" / "r01", sample_round(), tmp_path / "scratch")
    out = tmp_path / "a[1] *?" / "round=7 Läufe"
    said("export", tmp_path / "c", "--out", out)
    said("export", out, "--out", tmp_path / "again")
    assert (tmp_path / "again" / "tickets.parquet").read_bytes() == (out / "tickets.parquet").read_bytes()


def test_damage_within_an_export_is_a_sentence(tmp_path: Path) -> None:
    export_sample(tmp_path / "c" / "r01", sample_round(), tmp_path / "scratch")
    said("export", tmp_path / "c", "--out", tmp_path / "out")
    file = tmp_path / "out" / "trials.parquet"
    data = bytearray(file.read_bytes())
    data[4:400] = bytes(396)
    file.write_bytes(data)
    assert "[malformed] trials: the rows of trials cannot be read" in refused(
        "export", tmp_path / "out", "--out", tmp_path / "again"
    )
    assert not (tmp_path / "again").exists()


@pytest.mark.slow
def test_a_disk_that_takes_no_more_leaves_a_sentence_and_no_half_of_an_export(tmp_path: Path) -> None:
    export_sample(tmp_path / "c" / "r01", sample_round(), tmp_path / "scratch")
    for form in ("parquet", "csv", "json"):
        command = f"ulimit -f 8; exec {sys.executable} -m roundkit export c --out out --format {form}"
        done = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert any(line.startswith("roundkit: [") for line in done.stderr.splitlines())
        assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "scratch"]


def test_export_leaves_out_what_is_broken_when_asked(tmp_path: Path) -> None:
    export_sample(tmp_path / "c" / "r01", sample_round(), tmp_path / "scratch")
    broken = export_sample(tmp_path / "c" / "r02", sample_round(round_id="r02"), tmp_path / "scratch")
    (broken / "secret.json").unlink()
    output = said("export", tmp_path / "c", "--out", tmp_path / "out", "--skip-broken")
    assert "left out: r02: [missing-file]" in output


def test_n11_import_then_export_as_one_ledger(tmp_path: Path) -> None:
    (tmp_path / "results.tsv").write_text(RESULTS)
    (tmp_path / "log.jsonl").write_text('{"id": "x", "score": 0.1}\n')
    said(
        "import", "results-tsv", tmp_path / "results.tsv", "--out", tmp_path / "in" / "tsv", "--campaign", "c"
    )
    column = ("--column", "ticket=id", "--column", "gain=score")
    said("import", "jsonl", tmp_path / "log.jsonl", "--out", tmp_path / "in" / "log", *column)
    said("export", tmp_path / "in", "--out", tmp_path / "all", "--format", "json")
    tickets = json.loads((tmp_path / "all" / "tickets.json").read_bytes())
    assert {(ticket["campaign"], ticket["ticket"]) for ticket in tickets} == {
        ("c", "0001-a"), ("c", "0002-b"), ("jsonl", "x"),
    }  # fmt: skip
    said("import", "jsonl", tmp_path / "log.jsonl", "--out", tmp_path / "no", "--column", "gain", expect=2)


def test_notebooks_are_listed_copied_and_run_with_or_without_the_word(tmp_path: Path) -> None:
    assert "explore_ledger: Explore ledgers" in said("notebook", "list")
    copied = said("notebook", "copy", "audit_evidence", tmp_path / "mine").strip()
    assert Path(copied) == tmp_path / "mine" / "audit_evidence.ipynb"
    for words in (("notebook",), ("notebook", "run")):
        assert "[no-notebook]" in refused(*words, "none", "--out", tmp_path / "x.ipynb")
    answer = refused("notebook", "-p", "evidnce=x", "audit_evidence", "--out", tmp_path / "x.ipynb")
    assert "[unknown-parameter]" in answer
    assert not (tmp_path / "x.ipynb").exists()


@pytest.mark.parametrize("words", [("notebook", "--help"), ("export", "--help"), ("import", "--help")])
def test_help_says_what_there_is(words: tuple[str, ...]) -> None:
    assert len(said(*words)) > 300
