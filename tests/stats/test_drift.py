"""The cumulative sum over A/A checks."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from roundkit.stats.drift import DriftLimits, DriftState, drift_step

LIMITS = DriftLimits(allowance=0.5, limit=5.0, single_limit=4.5)


def checks_until_pause(z_values: np.ndarray) -> int:
    state = DriftState()
    for z in z_values:
        state = drift_step(state, float(z), LIMITS)
        if state.paused:
            break
    return state.checks if state.paused else len(z_values) + 1


def test_m07_false_pauses_within_twenty_checks() -> None:
    rng = np.random.default_rng(1)
    paused = np.mean([checks_until_pause(rng.standard_normal(20)) <= 20 for _ in range(4000)])
    assert paused <= 0.06


@pytest.mark.parametrize("shift", [1.0, -1.0])
def test_m07_one_sigma_is_found_within_nine_checks(shift: float) -> None:
    """The median over many runs."""
    rng = np.random.default_rng(2)
    found = [checks_until_pause(rng.standard_normal(60) + shift) for _ in range(3000)]
    assert np.median(found) <= 9


def drift_history(z_values: Sequence[float], limits: DriftLimits) -> list[DriftState]:
    """The state after every check, starting afresh after each pause."""
    states = [DriftState()]
    for z in z_values:
        states.append(drift_step(DriftState() if states[-1].paused else states[-1], z, limits))
    return states[1:]


def test_m07_by_hand() -> None:
    states = drift_history([1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 0.0], LIMITS)
    assert [state.up for state in states] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0]
    assert [state.cause for state in states] == [None] * 5 + ["cusum-up", None]
    assert states[-1].checks == 1
    assert drift_history([-2.0] * 4, LIMITS)[-1].cause == "cusum-down"
    assert drift_history([0.0, -4.6], LIMITS)[-1].cause == "single"
    assert not drift_history([4.5], LIMITS)[-1].paused


def test_m07_a_limit_reached_by_float_sums_is_not_beyond_it() -> None:
    limits = DriftLimits(allowance=0.0, limit=0.6, single_limit=9.0)
    assert not drift_history([0.1] * 6, limits)[-1].paused
    assert drift_history([0.1] * 7, limits)[-1].paused


def test_wrong_values_are_refused() -> None:
    with pytest.raises(ValueError, match="allowance"):
        DriftLimits(-1, 5, 4)
    with pytest.raises(ValueError, match="no check"):
        drift_step(DriftState(), math.nan, LIMITS)
