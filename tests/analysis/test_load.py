"""Ledgers from every source: open rounds, evidence, Parquet exports, and a mix of all."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from bench.frames import write_many
from support.open_rounds import open_round_directory
from support.sample.lanes import NO_GAIN_LANES, Lane, Submission
from support.sample_evidence import export_sample, sample_round

from roundkit.analysis import TABLES, charts, export_places, find_places, load, write_frames
from roundkit.analysis.columns import ROWS_OF, schema_of
from roundkit.core.errors import Refused
from roundkit.models.evidence import EvidencePointer
from roundkit.store import open_store


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("closed")
    return export_sample(base / "evidence" / "r01", sample_round(), base / "scratch")


def codes(refused: pytest.ExceptionInfo[Refused]) -> set[str]:
    return {refusal.code for refusal in refused.value.refusals}


def test_an_open_round_gives_the_frames_that_evidence_gives(tmp_path: Path) -> None:
    folder = open_round_directory(tmp_path / "round", sample_round(), measured=2, paused="the device drifted")
    ledgers = load(tmp_path)
    for table in TABLES:
        assert dict(ledgers.table(table).collect_schema()) == schema_of(table)
    (row,) = ledgers.rounds.collect().to_dicts()
    assert (row["state"], row["paused"], row["missing"]) == (
        "open", "the device drifted", "the round is not closed",
    )  # fmt: skip
    assert row["evidence_digest"] is row["closed_utc"] is row["head"] is row["advanced"] is None
    tickets = ledgers.tickets.collect()
    waiting = tickets.filter(pl.col("state") == "queued")
    assert waiting.height == tickets.height - 2 - 2
    assert waiting["gain"].null_count() == waiting.height
    assert set(waiting["missing"]) == {"queued"}
    assert tickets["selected"].null_count() == tickets.height
    assert ledgers.lanes.collect()["outcome"].null_count() == 4
    assert ledgers.trials.select(pl.len()).collect().item() == 14 * (2 + 2)
    assert folder.database.exists()


def test_a_round_that_nobody_served_is_a_round(tmp_path: Path) -> None:
    folder = open_round_directory(tmp_path / "round", sample_round())
    shutil.rmtree(folder.store)
    folder.store.mkdir()
    (folder.store / "plan-digest").write_text(sample_round().plan.digest())
    ledgers = load(tmp_path / "round")
    assert ledgers.lanes.collect()["sentence"].to_list() == ["nothing was submitted yet"] * 4
    assert ledgers.tickets.collect().height == 0


def test_reading_a_round_changes_nothing_in_its_database(tmp_path: Path) -> None:
    folder = open_round_directory(tmp_path / "round", sample_round())
    before = folder.database.read_bytes()
    load(folder.root).tickets.collect()
    assert folder.database.read_bytes() == before
    with open_store(folder.database) as store, store.transaction():
        store.control.put("paused", "after a reader")


def test_a_mix_counts_every_round_once(tmp_path: Path, closed: Path) -> None:
    shutil.copytree(closed, tmp_path / "evidence")
    open_round_directory(tmp_path / "the same round", sample_round())
    open_round_directory(tmp_path / "another", sample_round(NO_GAIN_LANES, round_id="r02"))
    third = export_sample(tmp_path / "third", sample_round(NO_GAIN_LANES, round_id="r03"), tmp_path / "s")
    load([closed, third]).export(tmp_path / "frames")
    shutil.rmtree(third)
    ledgers = load(tmp_path)
    rounds = ledgers.rounds.sort("round").collect()
    assert rounds.select("round", "state").rows() == [("r01", "closed"), ("r02", "open"), ("r03", "closed")]
    assert ledgers.tickets.group_by("round").len().sort("round").collect()["len"].to_list() == [9, 2, 2]
    assert ledgers.to_pandas("tickets").shape[0] == 13


def test_a_round_counts_once_where_an_export_holds_some_of_its_frames_alone(
    tmp_path: Path, closed: Path
) -> None:
    ledgers = load(closed)
    ledgers.export(tmp_path / "tickets alone", tables=["tickets"])
    ledgers.export(tmp_path / "lanes and rounds", tables=["rounds", "lanes"])
    for places in ([closed, tmp_path], [tmp_path]):
        mixed = load(places)
        assert mixed.tickets.collect().height == 9, places
        assert mixed.lanes.collect().height == 4, places
    # What another tool measured, and somebody named after the round, is no copy of its rows.
    foreign = ledgers.trials.head(3).with_columns(purpose=pl.lit("imported"), side=None)
    write_frames({"trials": foreign.cast(schema_of("trials"))}, tmp_path / "imported")  # type: ignore[arg-type]
    both = load([closed, tmp_path / "imported"]).trials
    assert both.collect().height == ledgers.trials.collect().height + 3


def test_an_export_whose_rows_are_damaged_is_an_error_or_is_named(tmp_path: Path, closed: Path) -> None:
    load(closed).export(tmp_path / "torn")
    (tmp_path / "torn" / "rounds.parquet").write_bytes(
        torn((tmp_path / "torn" / "rounds.parquet").read_bytes())
    )
    load(closed).export(tmp_path / "no table")
    (tmp_path / "no table" / "lanes.parquet").write_bytes(b"rubbish")
    shutil.copytree(closed, tmp_path / "good")
    for folder in ("torn", "no table"):
        with pytest.raises(Refused) as refused:
            load(tmp_path / folder).rounds.collect()
        assert codes(refused) == {"malformed"}
        with pytest.raises(Refused):
            export_places([str(tmp_path / folder)], tmp_path / "out")
    done = export_places([str(tmp_path)], tmp_path / "out", strict=False)
    assert len(done.problems) == 2
    assert all("[malformed]" in problem for problem in done.problems)
    assert pl.read_parquet(tmp_path / "out" / "tickets.parquet").height == 9


def torn(data: bytes) -> bytes:
    """Return a Parquet file whose rows are damaged, and whose schema is not."""
    return data[:10] + b"\xff" * 390 + data[400:]


def test_two_rounds_of_one_name_are_refused_or_named(tmp_path: Path, closed: Path) -> None:
    other = export_sample(tmp_path / "other", sample_round(seed=2), tmp_path / "scratch")
    with pytest.raises(Refused) as refused:
        load([closed, other]).rounds.collect()
    assert codes(refused) == {"rounds-collide"}
    tolerant = load([closed, other], strict=False)
    assert tolerant.rounds.collect().height == 1
    assert "rounds-collide" in tolerant.problems[0]


def test_a_broken_ledger_is_an_error_or_is_named(tmp_path: Path, closed: Path) -> None:
    shutil.copytree(closed, tmp_path / "good")
    shutil.copytree(closed, tmp_path / "broken")
    (tmp_path / "broken" / "round-ledger.json").write_text("{}")
    with pytest.raises(Refused, match="wrong-size"):
        load(tmp_path).rounds.collect()
    ledgers = load(tmp_path, strict=False)
    assert ledgers.rounds.collect().height == 1
    assert ledgers.problem_table()["problem"].to_list()[0].startswith("broken: ")


def test_a_pruned_round_leads_to_its_evidence(tmp_path: Path, closed: Path) -> None:
    sample = sample_round()
    root = tmp_path / "round"
    root.mkdir()
    (root / "round-plan.json").write_bytes(sample.plan.to_bytes())
    pointer = EvidencePointer(
        format="roundkit-evidence-pointer/1", campaign_id="demo", round_id="r01",
        round_digest=sample.plan.digest(), evidence=str(closed), index_sha256="0" * 64,
        pruned_utc=sample.ledger.closed_utc,
    )  # fmt: skip
    (root / "evidence-pointer.json").write_bytes(pointer.to_bytes())
    assert load(root).rounds.collect()["state"].to_list() == ["closed"]
    gone = pointer.model_copy(update={"evidence": str(tmp_path / "gone")})
    (root / "evidence-pointer.json").write_bytes(gone.to_bytes())
    with pytest.raises(Refused, match="evidence-missing"):
        load(root).rounds.collect()


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_every_frame_is_exported(tmp_path: Path, closed: Path, form: str) -> None:
    ledgers = load(closed)
    files = ledgers.export(tmp_path / "out", form)  # type: ignore[arg-type]
    assert [file.stem for file in files] == list(TABLES)
    assert not list(tmp_path.glob(".*"))
    tickets = ledgers.tickets.collect()
    match form:
        case "parquet":
            again = load(tmp_path / "out")
            for table in TABLES:
                assert again.table(table).collect().equals(ledgers.table(table).collect())
            one = load(tmp_path / "out" / "tickets.parquet")
            assert one.tickets.collect().height == tickets.height
        case "csv":
            rows = list(csv.DictReader((tmp_path / "out" / "tickets.csv").open()))
            assert [row["ticket"] for row in rows] == tickets["ticket"].to_list()
            samples = next(csv.DictReader((tmp_path / "out" / "trials.csv").open()))["samples"]
            assert json.loads(samples) == ledgers.trials.collect()["samples"][0].to_list()
        case "json":
            rows = json.loads((tmp_path / "out" / "tickets.json").read_bytes())
            assert [row["gain"] for row in rows] == tickets["gain"].to_list()


def test_n05_a_formula_in_untrusted_text_is_no_formula_in_a_spreadsheet(tmp_path: Path) -> None:
    lanes = (Lane("L1", (Submission(0.0),)),)
    sample = sample_round(lanes, text={"hypothesis": '=HYPERLINK("http://elsewhere","x")'})
    load(export_sample(tmp_path / "r", sample, tmp_path / "s")).export(
        str(tmp_path / "out"), "csv", ["lanes"]
    )
    row = next(csv.DictReader((tmp_path / "out" / "lanes.csv").open()))
    assert row["hypothesis"] == '\'=HYPERLINK("http://elsewhere","x")'


def test_an_export_overwrites_nothing_and_leaves_no_half(tmp_path: Path, closed: Path) -> None:
    ledgers = load(closed)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("kept")
    with pytest.raises(Refused) as refused:
        ledgers.export(tmp_path / "there")
    assert codes(refused) == {"exists"}
    with pytest.raises(Refused) as refused:
        ledgers.export(tmp_path / "out", "xlsx")  # type: ignore[arg-type]
    assert codes(refused) == {"unknown-format"}
    with pytest.raises(Refused) as refused:
        write_frames({"tickets": ledgers.tickets.head(0)}, tmp_path / "empty")
    assert codes(refused) == {"nothing-to-write"}
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_what_is_no_frame_is_refused(tmp_path: Path, closed: Path) -> None:
    (tmp_path / "tickets.parquet").write_text("no parquet")
    with pytest.raises(Refused) as refused:
        load(tmp_path / "tickets.parquet").tickets.collect()
    assert codes(refused) == {"malformed"}
    with pytest.raises(Refused) as refused:
        load(closed).table("ticket")
    assert codes(refused) == {"unknown-table"}
    assert set(ROWS_OF) == set(TABLES)


def test_n07_finding_follows_no_link_and_looks_into_no_ledger(tmp_path: Path, closed: Path) -> None:
    shutil.copytree(closed, tmp_path / "a" / "b" / "r01")
    folder = open_round_directory(tmp_path / "round", sample_round(round_id="r02"))
    shutil.copytree(closed, folder.root / "lanes" / "L1" / "planted")
    (tmp_path / "loop").symlink_to(tmp_path)
    shutil.copytree(closed, tmp_path / ".hidden")
    found = [(place.kind, place.path.name) for place in find_places([tmp_path])]
    assert found == [("evidence", "r01"), ("round", "round")]


def test_n07_the_overview_of_many_tickets_counts_every_one(tmp_path: Path) -> None:
    write_many(tmp_path / "many", 7_000)
    ledgers = load(tmp_path / "many")
    rows = next(iter(charts.verdict_counts(ledgers.tickets).to_dict()["datasets"].values()))
    assert sum(row["tickets"] for row in rows) == 7_000
    bins = next(iter(charts.gain_distribution(ledgers.tickets).to_dict()["datasets"].values()))
    assert (
        sum(row["tickets"] for row in bins) == ledgers.tickets.select(pl.col("gain").count()).collect().item()
    )
    assert len(bins) <= 62
