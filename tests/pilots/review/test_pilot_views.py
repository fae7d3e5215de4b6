"""What is shown of a real pilot: taxonomy, comparison or why there is none, and no invented figure."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import polars as pl
import pytest
from support.pilot_folders import RECOVERED, reviewed, trial_of

from roundkit import analysis, report
from roundkit.audit import open_pilot
from roundkit.core.canonical import digest_file
from roundkit.evidence.pilot_layout import trial_folder
from roundkit.evidence.pilot_reader import PilotReader
from roundkit.models.pilot_evidence import Artifact, TrialFiles
from roundkit.models.pilot_findings import Finding
from roundkit.pilots.interventions import intervene
from roundkit.report.views import Html, Table
from roundkit.rules.pilot_eligibility import ITEMS, eligibility
from roundkit.rules.pilot_summary import aggregates, costs, totals, withheld


def by_cause(pilot: Path) -> dict[str, Finding]:
    return {finding.cause: finding for finding in open_pilot(pilot).findings}


def test_findings_follow_from_evidence_and_cite_it(drifted: Path) -> None:
    intervene(drifted, f"trials/{trial_of(drifted, RECOVERED).name}", kind="restart", by="op", note="")
    found = by_cause(drifted)
    assert found["calls-not-found"].failure_class == "discovery"
    assert set(found["calls-not-found"].tuples) == {"signature.guided.2", "signature.guided.3"}
    assert set(found["not-recovered"].tuples) == {
        "signature.plain.2", "signature.plain.4", "signature.guided.1", "signature.guided.2",
        "signature.guided.3",
    }  # fmt: skip
    assert found["not-recovered"].failure_class == "stale-recovery"
    assert found["intervened"].failure_class == "human-intervention"
    assert found["wrong-candidate"].failure_class == "incorrect-proposal"
    assert found["ineligible"].weight == 8
    assert "timeout" not in found
    every = open_pilot(drifted).findings
    assert [finding.rank for finding in every] == list(range(1, len(every) + 1))
    assert [len(finding.tuples) for finding in every] == sorted(
        (len(finding.tuples) for finding in every), reverse=True
    )
    for finding in every:
        artifact = drifted / finding.artifact
        assert artifact.is_file(), finding.artifact
        assert finding.sha256 == digest_file(artifact)
        assert finding.tuple_id is not None
        assert finding.tuple_id in finding.artifact


def test_nothing_is_compared_before_something_is_eligible(drifted: Path) -> None:
    pilot = open_pilot(drifted)
    assert withheld(pilot.cohort) == "none of the 8 observations is eligible"
    assert aggregates(pilot.cohort) == ()
    shown = report.pilot_comparison(pilot)
    assert isinstance(shown, Html)
    assert shown.text.startswith("Withheld: none of the 8 observations is eligible")
    headline = report.pilot_headline(pilot).text
    assert "This is not evidence about any model" in headline
    assert "Variants are not compared" in headline
    assert "eligible: 0 of 8" in headline


def test_only_eligible_observations_are_compared(reviewed_once: Path) -> None:
    pilot = open_pilot(reviewed_once)
    assert withheld(pilot.cohort) is None
    plain, guided = aggregates(pilot.cohort)
    assert (plain.variant, plain.eligible, plain.expected) == ("plain", 1, 4)
    (row,) = (row for row in pilot.cohort.observations if row.eligibility.eligible)
    assert plain.presented_bytes == row.eligibility.presented_bytes
    assert plain.calls == row.calls
    assert (guided.eligible, guided.calls, guided.active_ms, guided.wall_ms) == (0, None, None, None)
    shown = report.pilot_comparison(pilot)
    assert isinstance(shown, Table)
    assert "missing: no eligible observation knows it" in shown.to_html()


def test_comparison_is_withheld_while_the_matrix_is_incomplete(drifted: Path) -> None:
    reviewed(drifted, RECOVERED)
    shutil.rmtree(trial_of(drifted, "signature.guided.4"))
    (trial_of(drifted, "signature.guided.3") / "record.json").unlink()
    pilot = open_pilot(drifted)
    assert withheld(pilot.cohort) == "2 of 8 tuples have no record yet"
    assert totals(pilot.cohort).eligible == 1
    assert "Provisional: 2 of 8 tuples have no record." in report.pilot_headline(pilot).text
    states = dict(analysis.pilot_frames(pilot).tuples.select("tuple", "state").collect().iter_rows())
    assert states["signature.guided.4"] == "missing"
    assert states["signature.guided.3"] == "unfinished"
    assert [len(table.rows) for table in (report.tuple_table(pilot), report.token_table(pilot))] == [8, 8]
    assert "no record" in report.pair_table(pilot).to_html()
    audited = report.pilot_audit(pilot)
    assert not audited.passed
    # A record that was there and is gone leaves files that nothing binds: the evidence disagrees with itself.
    assert report.pilot_verdict(pilot, audited).outcome == "failed"


def test_a_pilot_that_is_not_finished_has_a_provisional_report(drifted: Path, tmp_path: Path) -> None:
    for path in (drifted / "replays").iterdir():
        path.unlink()
    shutil.rmtree(trial_of(drifted, "signature.guided.4"))
    pilot = open_pilot(drifted)
    assert report.pilot_verdict(pilot, report.pilot_audit(pilot)).outcome == "done"


def test_figures_of_frames_tables_and_records_are_the_same(drifted_once: Path) -> None:
    pilot = open_pilot(drifted_once)
    frames = analysis.pilot_frames(pilot)
    calls = frames.calls.collect()
    records = [row.record for row in pilot.cohort.observations if row.record is not None]
    assert calls.height == sum(record.calls for record in records)
    assert calls.filter(pl.col("exit_code") != 0).height == sum(record.failed_calls for record in records)
    counts = totals(pilot.cohort)
    assert (counts.calls.value, counts.calls.known) == (calls.height, 8)
    assert sum(group.attempts for group in costs(pilot.cohort)) == 8
    tokens = frames.tuples.select("tokens_input", "tokens_output", "micro_usd").collect()
    assert tokens.null_count().row(0) == (8, 8, 8)
    assert "unknown" in report.cost_table(pilot).to_html()
    assert frames.eligibility.collect().height == 8 * len(ITEMS)
    text = report.framework_table(report.pilot_audit(pilot)).to_html()
    assert "every size and SHA-256" in text


@pytest.mark.parametrize("seed", range(20))
def test_p05_eligibility_never_raises_and_never_counts_damage(reviewed_once: Path, seed: int) -> None:
    chance = random.Random(seed)
    reader = PilotReader(reviewed_once)
    plan = reader.plan()
    slot = next(slot for slot in plan.schedule if slot.tuple_id == RECOVERED)
    whole = reader.trial_files(trial_folder(slot.order, RECOVERED), slot)
    assert eligibility(plan, slot, whole).eligible
    for _ in range(30):
        name = chance.choice(sorted(name for name, each in whole.artifacts.items() if each.data))
        data = bytearray(whole.artifacts[name].data or b"")
        place = chance.randrange(len(data))
        match chance.randrange(4):
            case 0:
                data[place] ^= 1 << chance.randrange(8)
            case 1:
                del data[place:]
            case 2:
                data[place:place] = bytes([chance.randrange(256)])
            case _:
                data[:] = chance.randbytes(chance.randrange(200))
        damaged = {**whole.artifacts, name: Artifact(name, bytes(data))}
        found = eligibility(plan, slot, TrialFiles(whole.folder, damaged, whole.candidate_sha256))
        # Nothing binds the two records that bind all others: a digit of a time can change in them.
        assert not found.eligible or name in {"record.json", "review/review.json"}, name
