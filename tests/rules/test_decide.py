"""From raw trials to a verdict, for metrics of either direction."""

from __future__ import annotations

import math
from typing import Any

import pytest
from support.sample.lanes import Lane, Submission
from support.sample_evidence import SampleRound, sample_round

from roundkit.models.experiment import ExperimentRecord
from roundkit.models.measurement import SessionNoise
from roundkit.models.verdict import VerdictRecord
from roundkit.rules.ratio import interaction_ratio
from roundkit.rules.verdict import decide
from roundkit.rules.verdict_words import in_words


def decided(
    sample: SampleRound, baseline: float, candidate: float, *, session_sd: float | None = None
) -> VerdictRecord:
    """The verdict on one lane's experiment with other samples: these levels, and a little noise."""
    record = next(record for record in sample.experiments if record.purpose == "ticket")
    levels = {"baseline": baseline, "candidate": candidate}
    trials = []
    for trial in record.trials:
        value = levels[trial.planned.side] * (1 + 0.002 * (trial.planned.index % 3 - 1))
        metrics = {**trial.metrics, "latency_ms": (value, value, value)}
        trials.append(trial.model_copy(update={"value": value, "metrics": metrics}))
    noise = None if session_sd is None else SessionNoise(checks=8, variance=session_sd**2)
    changed: ExperimentRecord = record.model_copy(update={"trials": tuple(trials), "session_noise": noise})
    return decide(changed, sample.run_spec)


@pytest.mark.parametrize(
    ("direction", "candidate", "verdict", "reason", "gain", "unit"),
    [
        ("lower", 75.0, "pass", "gain", 0.25, 25.0),
        ("lower", 125.0, "fail", "regression", -0.25, -25.0),
        ("higher", 125.0, "pass", "gain", 0.2, 25.0),
        ("higher", 80.0, "fail", "regression", -0.25, -20.0),
    ],
)
def test_the_sign_of_a_verdict_follows_the_direction(
    direction: Any, candidate: float, verdict: str, reason: str, gain: float, unit: float
) -> None:
    sample = sample_round((Lane("L1", (Submission(0.1),)),), direction=direction)
    found = decided(sample, 100.0, candidate)
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.gain == pytest.approx(gain, abs=0.01)
    assert found.gain_unit == pytest.approx(unit, abs=1.0)
    assert found.z is not None
    assert (found.z > 0) is (gain > 0)
    # The record's sentence names what was needed; whoever is told of it hears what was seen as well.
    assert "(z" not in found.sentence
    assert f"beyond {found.z_required:.2f} sigma (z {found.z:.2f})" in in_words(found, None)


def test_noise_between_sessions_is_in_every_figure_that_says_how_well_a_gain_is_known() -> None:
    sample = sample_round((Lane("L1", (Submission(0.1),)),))
    quiet, noisy = (decided(sample, 100.0, 75.0, session_sd=sd) for sd in (None, 0.05))
    assert quiet.smallest_detectable_gain is not None
    assert noisy.smallest_detectable_gain is not None
    assert quiet.smallest_detectable_gain < 0.01
    # However many pairs: two sigma and 0.84 for the power, of 5 % a session.
    assert noisy.smallest_detectable_gain == pytest.approx(-math.expm1(-2.84 * 0.05), abs=0.005)
    # One lane on top of another: each gain was found in a session of its own, known to some 5 % of 75.
    known, vague = (interaction_ratio(one, one, "lower", fresh=True) for one in (quiet, noisy))
    assert known.value == vague.value == 1.0
    assert known.low is not None
    assert known.low > 0.95
    assert vague.low is not None
    assert vague.low < 0.7
    small = decided(sample, 100.0, 92.0, session_sd=0.05)
    assert interaction_ratio(noisy, small, "lower", fresh=True).value is None
