"""A whole round decided by instructions: from the probe at prepare to evidence that a stranger recomputes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.synthetic import campaign_repo, scripted_lane
from support.tools import needs_valgrind

from roundkit import report
from roundkit.audit import audit_round
from roundkit.evidence import open_evidence
from roundkit.models.instruments import INSTRUCTIONS_SAY_NOTHING
from roundkit.rounds.close import close
from roundkit.rounds.serve import serve


def counted(plan: Any) -> None:
    plan["metric"].update(name="instructions", unit="instructions")
    plan["benchmark"].update(
        argv=["{python}", "-s", "-P", "-S", "bench/bench.py"], instrument="instructions", timeout_s=300
    )
    plan["environment"].update(PYTHONHASHSEED="{hash_seed}")
    plan["test_plan"].update(min_gain=0.001, loss_margin=0.001, noise=None)


@pytest.mark.slow
@needs_valgrind
def test_m13_a_round_decided_by_instructions_closes_and_audits(open_folder: Path) -> None:
    repo = campaign_repo(open_folder, lanes=("L1",))
    repo.edit_campaign(counted)
    folder, _ = repo.launched(open_folder / "round")
    # More to read is more to do. What is no change is counted in test_instrument_experiments.
    knob = {"value": 0.0, "mode": "none", "pad": list(range(4000))}
    scripted_lane(folder.clone("L1"), {"knobs/L1.json": json.dumps(knob)})
    serve(folder, until="idle", report=lambda line: None)
    outcome = close(folder, report=lambda line: None)
    verdicts = {t.lane: t.verdict for t in outcome.ledger.tickets if t.verdict is not None}
    assert (verdicts["L1"].verdict, verdicts["L1"].reason) == ("fail", "regression")
    assert not outcome.ledger.advanced
    evidence = open_evidence(outcome.evidence)
    assert evidence.plan.counting_tool is not None
    audit = audit_round(outcome.evidence)
    assert audit.passed, audit.failures
    trials = [trial for record in evidence.experiments() for trial in record.trials]
    assert all(trial.counted is not None and trial.value == trial.counted.total for trial in trials)
    assert INSTRUCTIONS_SAY_NOTHING in report.headline(evidence).markup
