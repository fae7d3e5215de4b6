"""The shipped example from freezing to its page: three tasks, two variants, three repetitions, judged."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.pilot_folders import reviewed, trial_of
from support.pilots import example
from support.synthetic import reachable_folder

from roundkit.audit import audit_pilot, open_pilot
from roundkit.pilots.cohort import run_cohort, run_setup
from roundkit.pilots.replay import replay
from roundkit.rules.pilot_summary import totals

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def judged() -> Iterator[Path]:
    """The example, run, replayed, and each candidate but one reviewed."""
    with reachable_folder() as folder:
        files = example(folder)
        files.edit(lambda content: content["policy"].update(trial_s=5))
        pilot, plan = files.freeze()
        run_setup(pilot, plan, "rename", "guided")
        run_cohort(pilot, plan)
        replay(pilot, plan)
        for slot in plan.schedule[1:]:
            reviewed(pilot.root, slot.tuple_id)
        yield pilot.root


def test_the_example_is_judged_as_its_table_of_agents_says(judged: Path) -> None:
    report = audit_pilot(judged)
    assert report.passed, report.failures
    cohort = open_pilot(judged).cohort
    counts = totals(cohort)
    assert (counts.expected, counts.retained, counts.accepted, counts.eligible) == (18, 18, 11, 17)
    assert counts.processes == {"completed": 15, "timeout": 1, "error": 2}
    assert counts.setup == 1
    recovery = {row.tuple_id: row.eligibility.recovery for row in cohort.observations}
    assert recovery["signature.plain.1"] == "rejected-stale-write"
    assert recovery["signature.plain.3"] == "no-next-write"
    assert recovery["rename.plain.1"] == "not-asked"


def test_the_examples_findings_are_in_their_classes(judged: Path) -> None:
    found = {finding.cause: finding for finding in open_pilot(judged).findings}
    assert {cause: finding.failure_class for cause, finding in found.items()} == {
        "wrong-candidate": "incorrect-proposal",
        "not-recovered": "stale-recovery",
        "ineligible": "measurement-infrastructure",
        "timeout": "measurement-infrastructure",
        "provider-error": "measurement-infrastructure",
        "agent-error": "runtime-defect",
    }
    assert found["timeout"].tuples == ("signature.plain.3",)
    assert found["provider-error"].tuples == ("off-by-one.plain.3",)
    assert found["agent-error"].tuples == ("rename.plain.3",)
    # An agent that was refused once and then wrote over the new content recovered.
    assert set(found["not-recovered"].tuples) == {"signature.plain.2", "signature.plain.3"}


def test_the_examples_page_compares_and_says_that_scripts_played(judged: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = subprocess.run(
        [sys.executable, "-m", "roundkit", "pilot", "report", judged, "--out", out],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    page = out.read_text()
    assert "This is not evidence about any model" in page
    assert "Variants, over eligible observations only" in page
    assert "11 of 18 tuples fully accepted" in page
    assert str(judged.parent) not in page
    assert trial_of(judged, "signature.plain.3").name in page
