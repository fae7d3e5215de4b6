"""When the drift statistic goes on, and when it starts anew."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from roundkit.models.campaign import Drift
from roundkit.models.ledger import AaCheck
from roundkit.models.round_plan import DeviceSet
from roundkit.rules.drift import aa_check, check_order, check_words, same_place

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


def test_m07_what_a_check_saw_is_said_beside_what_is_allowed() -> None:
    check = AaCheck(
        experiment="aa-1", z=-0.523456789, cusum=1.023456789, delta=-0.00312345678, passed=True, reason=None
    )
    assert check_words(check, DRIFT) == (
        "the incumbent differs from itself by -0.31 % (z -0.52, at most 4.5; drift 1.02, at most 5)"
    )
    same = check.model_copy(update={"z": 0.0, "cusum": 0.0, "delta": -1e-12})
    assert "by +0.00 % (z +0.00," in check_words(same, DRIFT)


def checked(place: tuple[str, str], z: float, name: str) -> tuple[Any, AaCheck]:
    machine, device_set = place
    record: Any = SimpleNamespace(
        experiment_id=name, machine_sha256=machine, lease=SimpleNamespace(device_set=device_set)
    )
    return record, AaCheck(experiment=name, z=z, cusum=z, passed=abs(z) < 3, reason=None)


def test_each_device_set_of_each_machine_has_an_aa_history_of_its_own() -> None:
    places = [("m1", "a"), ("m1", "b"), ("m2", "a"), ("m1", "a")]
    rows = [checked(place, 1.0, f"aa-{number}") for number, place in enumerate(places)]
    records = {record.experiment_id: record for record, _ in rows}
    history = [check for _, check in rows]
    found = same_place(rows[0][0], history, records)
    assert [check.experiment for check in found] == ["aa-0", "aa-3"]
    assert [check.experiment for check in same_place(rows[2][0], history, records)] == ["aa-2"]


def test_the_next_check_goes_to_the_set_that_failed_and_then_to_the_one_checked_least() -> None:
    sets = [DeviceSet(id=name, platform="cpu", devices=(name,)) for name in ("0", "1", "2")]

    def order(*made: tuple[str, float]) -> list[str]:
        rows = [checked(("m", name), z, f"aa-{number}") for number, (name, z) in enumerate(made)]
        records = {record.experiment_id: record for record, _ in rows}
        return [one.id for one in check_order(sets, [check for _, check in rows], records)]

    assert order() == ["0", "1", "2"]
    assert order(("0", 0.0)) == ["1", "2", "0"]
    assert order(("0", 0.0), ("2", 0.0), ("0", 0.0)) == ["1", "2", "0"]
    assert order(("1", 0.0), ("0", 0.0), ("0", 5.0)) == ["0", "2", "1"]
    # It was held by others when the pause was ended, on another one: what it measures next is still in doubt.
    assert order(("1", 0.0), ("0", 0.0), ("0", 5.0), ("2", 0.0)) == ["0", "1", "2"]
    assert order(("0", 5.0), ("1", 0.0), ("0", 0.0)) == ["2", "1", "0"]
