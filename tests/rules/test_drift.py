"""When the drift statistic goes on, and when it starts anew."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from roundkit.models.campaign import Drift
from roundkit.models.ledger import AaCheck
from roundkit.rules.drift import aa_check

DRIFT = Drift(allowance=0.5, limit=5.0, single_limit=4.5)


def judged(*checks: tuple[float | None, bool]) -> list[AaCheck]:
    """Judge checks of (z, whether it was to end a pause) one after the other."""
    done: list[AaCheck] = []
    for number, (z, resumes) in enumerate(checks):
        outcome = "complete" if z is not None else "infrastructure"
        record: Any = SimpleNamespace(experiment_id=f"aa-{number}", outcome=outcome, reason="killed")
        verdict: Any = SimpleNamespace(z=z, delta=0.001, standard_error=0.001)
        done.append(aa_check(cast("Any", record), verdict, done, DRIFT, resumes=resumes))
    return done


@pytest.mark.parametrize(
    ("checks", "cusum", "passed"),
    [
        ([(2.0, False), (2.0, False)], 3.0, True),
        ([(2.0, False)] * 4, 6.0, False),
        ([(2.0, False)] * 3 + [(2.0, True)], 1.5, True),
        ([(2.0, False)] * 4 + [(2.0, True), (1.0, False)], 2.0, True),
        ([(5.0, False)], 4.5, False),
        ([(2.0, False), (None, True), (2.0, False)], 1.5, True),
        ([(2.0, False), (None, False), (2.0, False)], 3.0, True),
    ],
    ids=["adds-up", "beyond-limit", "owner-resumed", "after-a-failure", "single", "broke-resuming", "broke"],
)
def test_m07_the_statistic_starts_anew_with_a_check_that_resumes(
    checks: list[tuple[float | None, bool]], cusum: float, passed: bool
) -> None:
    last = judged(*checks)[-1]
    assert (last.cusum, last.passed) == (pytest.approx(cusum), passed)
