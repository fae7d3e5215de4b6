"""The report of a policy pilot: one offline page, its figures those of the records."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roundkit.analysis.charts import runs_and_bounds, time_to_target
from roundkit.analysis.policy import curve_frame, runs_frame
from roundkit.cli.app import app
from roundkit.core.errors import Refused
from roundkit.report import NotebookFailed, figure, policy
from roundkit.report.policy_run import build_policy_report

from .test_policy_audit import PILOT


@pytest.fixture(scope="module")
def source() -> policy.PolicySource:
    return policy.open_pilot(PILOT)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("page") / "report.html"
    done = CliRunner().invoke(app, ["pilot", "report", str(PILOT), "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out.read_text()


def test_p11_the_page_is_labelled_and_says_what_it_does_not_show(page: str) -> None:
    text = re.sub(r"<[^>]+>|\s+", " ", page)
    assert "workflow-policy comparison" in text
    assert "Scripted lanes" in text
    assert "does not show that the gains carry over" in text
    assert "add device sets before lanes" in text
    assert "12.5" in text
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_p11_the_page_is_the_committed_one(page: str) -> None:
    assert PILOT.with_suffix(".html").read_text() == page


def test_p11_every_run_and_its_state_is_in_the_tables(source: policy.PolicySource) -> None:
    table = policy.runs_table(source)
    rows = {row[0]: row for row in table.rows}
    for record in source.records:
        state, time = rows[record.run_id][1:3]
        assert state == ("censored" if record.censored else "reached")
        assert (time == record.target_s) is not record.censored
    assert source.decision is not None
    headline = policy.headline(source).text
    assert source.plan.question in headline


def test_p11_medians_and_ranges_are_those_of_the_records(source: policy.PolicySource) -> None:
    rows = {row[0]: row[1:] for row in policy.arms_table(source).rows}
    assert rows["runs"] == ("3", "3")
    assert rows["tokens"] == ("unknown", "unknown")
    censored = [record for record in source.of("S") if record.censored]
    assert len(censored) == 1
    assert "to censored" in str(rows["time to the target"][1])


def test_p11_the_curve_falls_where_runs_reach_the_target_and_marks_the_censored(
    source: policy.PolicySource,
) -> None:
    runs = runs_frame(source.material)
    curve = curve_frame(runs)
    assert curve.filter(event="reached").height == 5
    assert curve.filter(event="censored").height == 1
    last = {row["arm"]: row["without_target_percent"] for row in curve.to_dicts()}
    assert last["P"] == 0.0
    # Where the censored run lasted longest, nobody knows when it would have reached the target.
    own = runs.filter(arm="S").sort("time_s").to_dicts()
    assert (last["S"] > 0.0) is (own[-1]["state"] == "censored")
    shown = figure(time_to_target(curve))
    assert "1 were censored" in shown.spec["description"]
    bounds = figure(runs_and_bounds(runs, serial_s=source.serial_s, parallel_s=source.parallel_s))
    assert len(bounds.table.rows) == 6


def test_p11_charts_of_nothing_are_no_charts(source: policy.PolicySource) -> None:
    runs = runs_frame(source.material).clear()
    assert figure(time_to_target(curve_frame(runs))).table.rows == ()
    assert figure(runs_and_bounds(runs, serial_s=None, parallel_s=None)).table.rows == ()


def test_p11_the_bounds_come_from_the_rounds(source: policy.PolicySource) -> None:
    assert source.workload is not None
    assert source.parallel_s is not None
    assert source.serial_s is not None
    assert 0 < source.parallel_s < source.serial_s
    assert len(policy.places_table(source).rows) == 6
    assert len(policy.queue_bound_table(source).rows) == sum(len(record.rounds) for record in source.records)


def test_p11_a_pilot_that_does_not_agree_with_itself_has_no_page(tmp_path: Path) -> None:
    copy = tmp_path / "pilot"
    shutil.copytree(PILOT, copy)
    record = next(copy.glob("runs/*-P.1/record.json"))
    record.write_bytes(record.read_bytes().replace(b'"censored":false', b'"censored":true'))
    with pytest.raises(NotebookFailed):
        build_policy_report(copy, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()
    assert (tmp_path / "page.failed.ipynb").exists()


def test_p11_a_pilot_that_goes_on_says_so(tmp_path: Path) -> None:
    copy = tmp_path / "pilot"
    shutil.copytree(PILOT, copy)
    (copy / "decision.json").unlink()
    shutil.rmtree(sorted(copy.glob("runs/*"))[-1])
    source = policy.open_pilot(copy)
    assert policy.headline(source).text.splitlines()[1] == "Nothing is decided yet: 5 of 6 runs made"
    assert policy.verdict(source).outcome == "done"
    assert policy.pairs_table(source).rows == ()


def test_p11_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no-pilot"):
        policy.open_pilot(tmp_path / "none")
    with pytest.raises(Refused, match="missing-file"):
        build_policy_report(tmp_path, tmp_path / "page.html")
