"""Pages of rounds that are still open, and of rounds with nothing, one or very many to show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.open_rounds import open_round_directory
from support.sample.lanes import NO_GAIN_LANES, STANDARD_LANES, Lane, Submission
from support.sample_evidence import export_sample, sample_round

from roundkit import report
from roundkit.report import build_report, open_round


def text_of(page: Path) -> str:
    plain = re.sub(r"<script.*?</script>|<[^>]+>", " ", page.read_text(), flags=re.DOTALL)
    return " ".join(plain.split())


def test_n12_an_open_round_with_a_paused_queue_gives_a_page_marked_provisional(tmp_path: Path) -> None:
    folder = open_round_directory(tmp_path / "round", sample_round(), measured=3, paused="the device drifted")
    build_report(folder.root, tmp_path / "one.html")
    words = text_of(tmp_path / "one.html")
    assert "Nothing is decided yet: 5 of 9 tickets settled" in words
    assert "Provisional: the round is open" in words
    assert "The queue is paused: the device drifted. 4 tickets wait" in words
    assert "development evidence" in words
    assert "nobody can recompute this page" in words
    assert "Nothing is composed before the round is closed" in words
    assert str(tmp_path) not in (tmp_path / "one.html").read_text()


def test_n10_a_waiting_ticket_is_missing_and_never_zero(tmp_path: Path) -> None:
    folder = open_round_directory(tmp_path / "round", sample_round(), measured=0)
    source = open_round(folder.root)
    tickets = report.all_tickets(source).to_html()
    assert tickets.count("missing: queued") == 7
    assert "queued, not measured yet" in tickets
    assert report.headline(source).text.startswith("Nothing is decided yet: 2 of 9 tickets settled")
    assert "gain</dt><dd>not known yet" in report.headline(source).markup


def test_a_round_directory_with_a_changed_plan_gives_no_page(tmp_path: Path) -> None:
    folder = open_round_directory(tmp_path / "round", sample_round())
    folder.plan_file.write_bytes(folder.plan_file.read_bytes().replace(b"0.01", b"0.02", 1))
    with pytest.raises(Exception, match="plan-changed"):
        build_report(folder.root, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.slow
def test_n12_a_thousand_tickets_of_sixty_four_lanes_stay_under_five_megabytes(tmp_path: Path) -> None:
    turns = tuple(Submission(reject=("cap", "the cap of 15 is reached")) for _ in range(15))
    sample = sample_round(tuple(Lane(f"L{number:02}", (Submission(0.0), *turns)) for number in range(64)))
    assert len(sample.ledger.tickets) == 1024
    folder = open_round_directory(tmp_path / "round", sample)
    page = build_report(folder.root, tmp_path / "page.html").html
    assert page is not None
    assert page.stat().st_size < 5_000_000
    assert "1,024 of 1,024 tickets settled" in text_of(page)


@pytest.mark.parametrize(
    "lanes",
    [
        pytest.param(NO_GAIN_LANES, marks=pytest.mark.slow),
        pytest.param((Lane("solo", (Submission(0.1),)),), marks=pytest.mark.slow),
        (Lane("none", ()),),
    ],
)
def test_n12_little_to_show_reads_well(tmp_path: Path, lanes: tuple[Lane, ...]) -> None:
    evidence = export_sample(tmp_path / "r01", sample_round(lanes), tmp_path / "scratch")
    build_report(evidence, tmp_path / "page.html")
    words = text_of(tmp_path / "page.html")
    assert "None" not in words.replace("None of", "")
    assert "NaN" not in words
    assert ("New incumbent" in words) is (lanes[0].id == "solo")
    assert STANDARD_LANES
