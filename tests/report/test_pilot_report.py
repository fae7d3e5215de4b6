"""P10, and the page of a pilot: exactly its figures, nothing filled in, nothing compared that may not be."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

from roundkit import analysis, report
from roundkit.audit import audit_pilot, open_pilot
from roundkit.core.canonical import canonical_bytes
from roundkit.models.pilot_published import PublishedCohort
from roundkit.rules.pilot_summary import SMALL_PILOT

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "evidence/agent-task-comparison/pilots/published-2026-09-13"
ITEMS = ("presentation", "review", "recovery", "interventions")


class Page(HTMLParser):
    """A page's words, the figures of its headline, and the cells of each table by caption."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: dict[str, list[list[str]]] = {}
        self.figures: dict[str, str] = {}
        self._words: list[str] = []
        self._open: list[str] = []
        self._caption = self._name = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(tag)
        if tag == "caption":
            self._caption = ""
        elif tag == "tr" and self._caption:
            self.tables.setdefault(self._caption, []).append([])
        elif tag in {"td", "th"} and self._caption:
            self.tables[self._caption][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if {"script", "style"} & set(self._open):
            return
        self._words.append(data)
        if "caption" in self._open:
            self._caption += data
        elif {"td", "th"} & set(self._open) and self._caption:
            self.tables[self._caption][-1][-1] += data
        elif "dt" in self._open:
            self._name = data
        elif "dd" in self._open and self._name not in self.figures:
            self.figures[self._name] = data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._words).split())

    def column(self, caption: str, heading: str) -> list[str]:
        head, *rows = self.tables[caption]
        place = head.index(heading)
        return [row[place] for row in rows]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    out = tmp_path_factory.mktemp("pilot") / "report.html"
    report.build_pilot_report(PUBLISHED, out)
    return Page(out.read_text())


def test_p10_the_report_prints_exactly_the_published_figures(page: Page) -> None:
    figures = page.figures
    assert figures["tuples retained"] == "18 of 18"
    assert figures["fully accepted"] == "0 of 18"
    assert figures["process completed"] == "4 of 18"
    assert figures["process timeout"] == "14 of 18"
    assert figures["calls"] == "1,180"
    assert figures["failed calls"] == "757"
    assert figures["eligible"] == "0 of 18"
    assert figures["setup attempts"] == "2"
    assert "Withheld: none of the 18 observations is eligible" in page.text
    assert "Variants, over eligible observations only" not in page.tables
    assert "1,180 calls, of which 757 failed" in page.text
    assert SMALL_PILOT in page.text


def test_p10_every_tuple_stands_there_once_with_its_own_figures(page: Page) -> None:
    rows = PublishedCohort.from_bytes((PUBLISHED / "published.json").read_bytes(), place="p").tuples
    assert page.column("Every tuple", "tuple") == [row.tuple_id for row in rows]
    assert page.column("Every tuple", "process") == [row.process for row in rows]
    assert page.column("Every tuple", "calls") == [f"{row.calls:,}" for row in rows]
    assert page.column("Every tuple", "failed calls") == [str(row.failed_calls) for row in rows]
    assert set(page.column("Every tuple", "acceptance")) == {"failed"}
    assert set(page.column("Every tuple", "eligible")) == {"no"}
    assert page.column("Every tuple", "detail").count("failed in the source") == 14
    assert page.column("Tokens by component", "input") == [f"{row.input_tokens:,}" for row in rows]
    assert page.column("Setup attempts, outside of the matrix", "attempt") == [
        "pilot-06bec1c2-01", "pilot-96f90af1-01",
    ]  # fmt: skip


def test_p10_nothing_was_filled_in(page: Page) -> None:
    for component in ("cached input", "cache writes", "reasoning, of the output"):
        assert set(page.column("Tokens by component", component)) == {"unknown"}
    assert page.column("Tokens by component", "in flight at the end").count("unknown") == 14
    assert set(page.column("Every tuple", "interventions")) == {"missing: ineligible"}
    unknown = ("presented (bytes)", "validation (s)", "active review (s)", "interventions")
    for heading in unknown:
        assert set(page.column("Context, recovery, validation and review", heading)) == {"unknown"}
    assert page.column("Why observations are ineligible", "item") == list(ITEMS)
    assert page.column("Why observations are ineligible", "tuples") == ["18"] * 4
    frames = analysis.pilot_frames(PUBLISHED)
    unmeasured = ("presented_bytes", "active_ms", "recovery", "interventions", "micro_usd", "validation_ms")
    found = frames.tuples.select(unmeasured).collect()
    assert found.null_count().row(0) == (18,) * len(unmeasured)


def test_p10_frames_and_page_have_the_same_figures(page: Page) -> None:
    frames = analysis.pilot_frames(PUBLISHED)
    sums = frames.tuples.select(pl.col("calls", "failed_calls").sum(), pl.len()).collect()
    assert sums.row(0) == (1180, 757, 18)
    ends = frames.tuples.group_by("process").len().collect()
    assert dict(ends.iter_rows()) == {"completed": 4, "timeout": 14}
    assert frames.eligibility.filter(~pl.col("measured")).select(pl.len()).collect().item() == 72
    assert frames.findings.collect().height == len(page.tables["Findings"]) - 1
    assert page.column("What attempts used", "number") == ["4", "14", "2"]
    failed = [row for row in page.column("What attempts used", "failed calls") if row != "unknown"]
    assert sum(map(int, failed)) == 757


def test_p10_the_audit_passes_and_says_what_it_cannot_recompute() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "roundkit", "pilot", "audit", PUBLISHED, "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    checks = json.loads(done.stdout)[0]["checks"]
    details = {check["name"]: check["detail"] for check in checks}
    assert details["tuples"] == "18 tuples, each exactly once; 4 completed, 14 timeout"
    assert details["figures"] == "1,180 calls of which 757 failed; 0 of 18 accepted"
    assert details["eligibility"] == "0 of 18 observations are eligible"
    assert "are not in this folder" in details["cannot be recomputed"]
    assert sum(check["name"] == "not recorded" for check in checks) == 10


@pytest.mark.parametrize("way", ["missing", "duplicate", "extra", "reason", "calls", "order"])
def test_p02_a_published_cohort_that_is_not_whole_fails(tmp_path: Path, way: str) -> None:
    copy = shutil.copytree(PUBLISHED, tmp_path / "copy") / "published.json"
    value = json.loads(copy.read_bytes())
    rows = value["tuples"]
    if way == "missing":
        rows.pop()
    elif way == "duplicate":
        rows.append({**rows[-1], "order": 19})
    elif way == "extra":
        rows.append({**rows[-1], "order": 19, "repetition": 4})
    elif way == "reason":
        value["not_recorded"] = [entry for entry in value["not_recorded"] if entry["item"] != "review"]
    elif way == "calls":
        rows[0]["failed_calls"] = rows[0]["calls"] + 1
    else:
        rows[0]["order"], rows[1]["order"] = 2, 1
    copy.write_bytes(canonical_bytes(value))
    found = [f"{check.where}: {check.detail}" for check in audit_pilot(copy.parent).failures]
    words = {
        "missing": r"\.3: \[missing\]",
        "duplicate": r"source-first\.3: \[duplicate\]",
        "extra": r"source-first\.4: \[extra\]",
        "reason": r"review: nothing says why",
        "calls": r"graph-operational\.1: 62 of 61 calls failed",
        "order": r"order: is not numbered",
    }[way]
    assert any(re.search(words, line) for line in found), found


def test_p10_the_published_word_is_kept_beside_ours() -> None:
    every = open_pilot(PUBLISHED).cohort.observations
    assert {(each.process, each.process_word) for each in every} == {
        ("completed", "completed"), ("timeout", "failed"),
    }  # fmt: skip
    assert all(each.wall_ms is not None for each in every)
    assert all((each.wall_ms or 0) >= 180_000 for each in every if each.process == "timeout")
