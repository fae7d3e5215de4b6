"""Which experiments may end early, and what A/A checks say of noise between sessions."""

from __future__ import annotations

import pytest

from roundkit.models.campaign import EarlyStopping
from roundkit.models.ledger import AaCheck
from roundkit.models.measurement import Purpose
from roundkit.models.round_plan import Gates
from roundkit.rules.looks import noise_where, place_noise, plan_looks, session_noise

EARLY = EarlyStopping(
    first_look=6, every=2, spending_exponent=2.0, futility_power=0.05, futility_optimism=1.5
)


def gates(pairs: int = 12, early: EarlyStopping | None = EARLY, checks: int | None = 3) -> Gates:
    return Gates(
        ab_ba_pairs=pairs, repetitions=1, min_gain=0.01, loss_margin=0.01, sigma_min=2.0, order_margin=0.0,
        remeasure_limit=1, early_stopping=early, session_checks=checks,
    )  # fmt: skip


def check(
    delta: float | None, error: float | None = 0.01, *, resumes: bool = False, name: str = "aa-1"
) -> AaCheck:
    return AaCheck(
        experiment=name, z=0.0, cusum=0.0, delta=delta, standard_error=error, passed=True, reason=None,
        resumes=resumes,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pairs", "early", "looks"),
    [
        (12, EARLY, (6, 8, 10, 12)),
        (6, EARLY, (6,)),
        (20, EARLY.model_copy(update={"first_look": 8, "every": 6}), (8, 14, 20)),
        (10, EARLY.model_copy(update={"every": 6}), (6, 10)),
    ],
)
def test_m04_looks_end_with_the_last_pair(pairs: int, early: EarlyStopping, looks: tuple[int, ...]) -> None:
    plan = plan_looks(gates(pairs, early), "ticket")
    assert plan is not None
    assert plan.looks == looks
    assert len(plan.boundaries) == len(looks)
    assert plan.boundaries == tuple(sorted(plan.boundaries, reverse=True))
    assert plan.boundaries[-1] >= 2.0 - 1e-6


@pytest.mark.parametrize("purpose", ["aa", "compose", "rerun", "fallback", "standalone"])
def test_m05_what_is_called_a_gain_has_every_pair(purpose: Purpose) -> None:
    assert plan_looks(gates(), purpose) is None
    assert plan_looks(gates(early=None), "ticket") is None


def test_noise_between_sessions_is_what_the_checks_vary_by_beyond_their_errors() -> None:
    checks = [check(0.03), check(-0.03), check(0.03)]
    noise = session_noise(checks, gates())
    assert noise is not None
    assert (noise.checks, noise.variance) == (3, pytest.approx(0.0009 - 0.0001))
    quiet = session_noise([check(0.001), check(0.0), check(None, None), check(-0.001)], gates())
    assert quiet is not None
    assert (quiet.checks, quiet.variance) == (4, 0.0)


@pytest.mark.parametrize(
    ("checks", "limit"),
    [
        ([check(0.03), check(0.03)], 3),
        ([check(0.03)] * 3, None),
        ([check(0.03)] * 3 + [check(0.01, resumes=True), check(0.0)], 3),
    ],
    ids=["too-few", "never", "another-machine-since"],
)
def test_noise_between_sessions_is_unknown(checks: list[AaCheck], limit: int | None) -> None:
    assert session_noise(checks, gates(checks=limit)) is None


def test_noise_between_sessions_is_kept_for_each_device_set_of_each_machine() -> None:
    deltas = {"busy": (0.09, -0.09, 0.09), "quiet": (0.001, 0.0, -0.001), "new": (0.0, 0.0)}
    checks = [
        check(delta, name=f"{name}-{number}")
        for name, all_of in deltas.items()
        for number, delta in enumerate(all_of)
    ]
    here, there = "a" * 64, "b" * 64
    places = {one.experiment: (here, one.experiment.partition("-")[0]) for one in checks}
    assert [one.device_set for one in place_noise(checks, places, gates())] == ["busy", "quiet"]

    def variance(machine: str | None, device_set: str | None) -> float:
        found = noise_where((machine, device_set), checks, places, gates())
        assert found is not None
        assert found.checks == len(checks)
        return found.variance

    pooled = session_noise(checks, gates())
    assert pooled is not None
    # Pooled, the quiet set's checks would hide two thirds of the busy one's noise.
    assert variance(here, "busy") == pytest.approx(0.0081 - 0.0001)
    assert variance(here, "busy") > 2 * pooled.variance
    assert variance(here, "quiet") == 0.0
    # Until a set has checks enough of its own, the round's stand for them; another machine's never do.
    assert variance(here, "new") == variance(there, "busy") == variance(here, None) == pooled.variance
