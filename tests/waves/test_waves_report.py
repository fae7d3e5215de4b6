"""W12: frames, charts, the notebook and the page of a wave campaign."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from support.wave_builder import WaveCampaign, wave_campaign

from roundkit import analysis
from roundkit.audit import audit_waves
from roundkit.core.clock import now_utc
from roundkit.core.errors import Refused
from roundkit.evidence import wave_layout as names
from roundkit.models.wave_records import ShardEnd
from roundkit.models.wave_traffic import RequestEvent
from roundkit.report import NotebookFailed, build_waves_report, run_notebook, waves_footer, waves_headline
from roundkit.waves.export import export_campaign
from roundkit.waves.folder import open_campaign
from roundkit.waves.telemetry import append

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "waves_report.ipynb"
EVIDENCE = ROOT / "evidence" / "c-functions"
HOSTILE = "<img src=x onerror=owned()>"
TITLES = (
    "What each wave banked", "Throughput against workers", "429s by source", "How busy the fleet was",
    "Why drafts did not bank",
)  # fmt: skip


def gated_campaign(folder: Path) -> WaveCampaign:
    """One gated wave with a right draft, a wrong one, one without an owner, and requests with 429s."""
    campaign = wave_campaign(folder)
    tag = campaign.drafted(
        {"a.txt": "right g a\n", "b.txt": "wrong\n", "c.txt": "mismatch\n", f"{HOSTILE}.txt": "?\n"},
        ("g", "a"), ("g", "b"), ("g", "c"),
    )  # fmt: skip
    at_s = now_utc().timestamp() // 60 * 60
    events = [
        RequestEvent(
            at_s=at_s + offset, event=event, tag=tag, shard=0, model="m", source=source, tokens=tokens
        )
        for offset, event, source, tokens in (
            (0.0, "post", None, None), (1.0, "429", "provider", None), (61.0, "post", None, None),
            (62.0, "429", "platform", None), (63.0, "post", None, None), (64.0, "answer", None, 7),
        )
    ]  # fmt: skip
    append(campaign.folder.at(names.EVENTS), b"".join(event.to_bytes() + b"\n" for event in events))
    end = ShardEnd(
        tag=tag, index=0, ended_utc=now_utc(), end_reason="exited", exit_code=0, truncated_turns=1, turns=4,
        micro_usd=None, tokens=7,
    )  # fmt: skip
    (campaign.folder.shard(tag, 0) / names.END).write_bytes(end.to_bytes())
    assert campaign.gate() == 0
    return campaign


def test_w12_frames_hold_what_the_campaign_recorded(open_folder: Path) -> None:
    campaign = gated_campaign(open_folder)
    exported = open_folder / "exported"
    export_campaign(campaign.folder, exported)
    assert not list(exported.rglob(names.DRAFTS))
    for place in (campaign.folder.root, exported):
        frames = analysis.load_waves(place)
        for table, columns in analysis.WAVE_TABLES.items():
            assert frames.table(table).collect().columns == [column.name for column in columns]
        wave = frames.waves.collect().row(0, named=True)
        assert (wave["tag"], wave["targets"], wave["drafts"], wave["gated"], wave["banked"]) == (
            "0001", 3, 4, 2, 1,
        )  # fmt: skip
        assert (wave["per_minute"], wave["missing"]) == (None, "no request was told")
        minutes = frames.wave_minutes.collect()
        assert minutes.select("posts", "platform_429", "provider_429", "answers", "tokens").rows() == [
            (1, 0, 1, 0, None), (2, 1, 0, 1, 7),
        ]  # fmt: skip
        rejects = frames.wave_rejects.select("stage", "kind").sort("stage").collect().rows()
        assert rejects == [("gate", "wrong body"), ("owner", "no one owner"), ("prefilter", "mismatch")]
        shard = frames.wave_shards.collect().row(0, named=True)
        assert (shard["turns"], shard["truncated_turns"], shard["micro_usd"]) == (4, 1, None)
        assert len(frames.to_pandas("wave_rejects")) == 3
    with pytest.raises(Refused, match="no frame 'wave'"):
        analysis.load_waves(exported).table("wave")


def test_w12_every_chart_is_drawn_of_one_wave_and_of_none(open_folder: Path) -> None:
    charts = analysis.charts
    frames = analysis.load_waves(gated_campaign(open_folder).folder.root)
    for rows in (10, 0):
        waves, minutes = frames.waves.head(rows), frames.wave_minutes.head(rows)
        shards, rejects = frames.wave_shards.head(rows), frames.wave_rejects.head(rows)
        drawn = (
            charts.banked_by_wave(waves), charts.throughput_by_workers(waves),
            charts.refusals_by_source(minutes), charts.fleet(shards, waves), charts.reject_reasons(rejects),
        )  # fmt: skip
        assert [chart.to_dict()["title"]["text"] for chart in drawn] == list(TITLES)


@pytest.mark.slow
def test_w12_a_page_is_written_of_a_campaign_as_far_as_it_has_come(open_folder: Path) -> None:
    campaign = gated_campaign(open_folder)
    page = open_folder / "page é.html"
    build_waves_report(campaign.folder.root, page)
    text = page.read_text()
    assert all(title in text for title in TITLES)
    assert "1 wave drew 3 targets and banked 1" in text
    assert HOSTILE not in text
    assert str(open_folder) not in text


def test_w12_the_headline_says_that_no_model_drafted(open_folder: Path) -> None:
    folder = gated_campaign(open_folder).folder
    assert {row.provenance for row in folder.ledger()} == {"scripted"}
    page = waves_headline(folder, "1 wave").markup
    assert '<p class="rk-provenance">Scripted agents' in page
    assert "Stub agents" in waves_headline(open_campaign(EVIDENCE), "5 waves").text


def test_w12_the_footer_names_the_command_that_recomputes_an_export(open_folder: Path) -> None:
    campaign = gated_campaign(open_folder)
    assert "nobody else can recompute this page" in waves_footer(campaign.folder).text
    said = waves_footer(open_campaign(EVIDENCE)).text
    digest = said.rpartition("roundkit audit evidence/c-functions --expect ")[2].split()[0]
    assert audit_waves(EVIDENCE, expect=digest).passed


def test_w12_the_notebook_refuses_what_is_no_campaign(open_folder: Path) -> None:
    with pytest.raises(Refused, match="no-campaign"):
        build_waves_report(open_folder, open_folder / "page.html")
    campaign = wave_campaign(open_folder)
    with pytest.raises(NotebookFailed, match="no wave has been gated yet"):
        run_notebook("waves_report", {"waves": str(campaign.folder.root)}, open_folder / "out.ipynb")


def test_w12_the_committed_campaign_shows_what_a_reader_asks_for() -> None:
    frames = analysis.load_waves(EVIDENCE)
    waves = frames.waves.collect()
    assert waves.filter(waves["mode"] == "wave").height == 5
    assert waves["per_minute"].drop_nulls().len() >= 3
    assert waves["provider_429"].sum() > 0
    assert waves["platform_429"].sum() > 0
    assert {"clean", "burst", "platform-429"} <= set(waves["decision"])
    assert {"prefilter", "gate"} <= set(frames.wave_rejects.collect()["stage"])
    assert waves["banked"].sum() > 100


def test_n03_the_committed_outputs_are_there_and_name_no_place() -> None:
    text = NOTEBOOK.read_text()
    for place in (str(ROOT), str(Path.home()), "/tmp/", "papermill"):
        assert place not in text or place == "/"
    notebook = nbformat.reads(text, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    shown = [cell for cell in cells if cell.source.splitlines()[-1].startswith(("report.", "print("))]
    assert len(shown) >= 9
    assert all(cell.outputs for cell in shown if "check_parameters" not in cell.source)
    assert 20 <= len(notebook.cells) <= 40
    assert all("def " not in cell.source for cell in cells)
    for title in TITLES:
        assert any(title in str(cell.outputs) for cell in cells)


@pytest.mark.slow
def test_n03_nbval_finds_the_committed_outputs(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "--nbval", "-p", "no:cacheprovider", "-p", "no:xdist", "-q",
            "--rootdir", tmp_path, "-c", os.devnull, "notebooks/waves_report.ipynb",
        ],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTEST_ADDOPTS": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
