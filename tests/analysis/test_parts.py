"""K08: tables too long for one file: written in parts, read like any other export."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from support.sample_evidence import export_sample, sample_round

from roundkit.analysis import add_parts, charts, load
from roundkit.core.errors import Refused


@pytest.fixture(scope="module")
def tickets(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    base = tmp_path_factory.mktemp("parts")
    return load(export_sample(base / "r01", sample_round(), base / "scratch")).tickets.collect()


def renamed(tickets: pl.DataFrame, campaign: str, first: int) -> pl.DataFrame:
    return tickets.with_columns(
        campaign=pl.lit(campaign), ticket=pl.format("t{}", pl.int_range(first, first + tickets.height))
    )


def test_k08_parts_are_read_back_as_they_were_written(tickets: pl.DataFrame, tmp_path: Path) -> None:
    rows, folder = tickets.height, tmp_path / "many"
    frames = [renamed(tickets, "one", 0), renamed(tickets, "two", rows), renamed(tickets, "one", 2 * rows)]
    parts = add_parts("tickets", iter(frames), folder, rows_a_part=rows)
    assert [str(part.relative_to(folder)) for part in parts] == [
        "tickets/campaign=one/part-00000.parquet",
        "tickets/campaign=two/part-00000.parquet",
        "tickets/campaign=one/part-00001.parquet",
    ]
    added = add_parts("tickets", [renamed(tickets, "two", 3 * rows).head(1)], folder)
    assert [part.name for part in added] == ["part-00001.parquet"]
    ledgers = load(folder)
    back = ledgers.tickets.collect()
    whole = pl.concat([*frames, renamed(tickets, "two", 3 * rows).head(1)])
    assert back.columns == whole.columns
    assert back.sort("ticket").equals(whole.sort("ticket"))
    assert ledgers.only("two").tickets.collect().height == rows + 1
    assert (
        charts.verdict_counts(ledgers.tickets).to_dict()["title"]["subtitle"].startswith(f"{3 * rows + 1} ")
    )


@pytest.mark.parametrize("campaign", ["one", "x/y", "a%20b", "a=b", "a b", "..", "2024", "ä", "../../../out"])
def test_k08_a_campaign_of_any_name_stays_in_the_folder_and_is_read_back(
    tickets: pl.DataFrame, tmp_path: Path, campaign: str
) -> None:
    (part,) = add_parts("tickets", [renamed(tickets, campaign, 0)], tmp_path / "many")
    assert part.resolve().parent.parent == tmp_path / "many" / "tickets"
    assert list(tmp_path.rglob("*.parquet")) == [part]
    assert load(tmp_path / "many").tickets.collect()["campaign"].unique().to_list() == [campaign]


def test_k08_a_part_half_written_is_not_read(tickets: pl.DataFrame, tmp_path: Path) -> None:
    (part,) = add_parts("tickets", [tickets], tmp_path / "many")
    part.with_name(f".{part.name}.tmp").write_bytes(b"PAR1")
    assert load(tmp_path / "many").tickets.collect().height == tickets.height


def test_k08_a_table_that_lies_in_one_file_gets_no_parts(tickets: pl.DataFrame, tmp_path: Path) -> None:
    tickets.write_parquet(tmp_path / "tickets.parquet")
    with pytest.raises(Refused, match="exists"):
        add_parts("tickets", [tickets], tmp_path)
    with pytest.raises(Refused, match="unknown-table"):
        add_parts("abacus", [tickets], tmp_path)
