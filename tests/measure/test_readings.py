"""Reported times held against the coordinator's clock, by tables."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from measure.worlds import PAIR, SINGLE, make_spec

from roundkit.models.readings import exceeds_clock, unexplained_growth
from roundkit.models.trial import PlannedTrial, Side, Trial, TrialResources

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def trial(pair: int | None, side: Side, reported_ms: float, wall_ms: float) -> Trial:
    return Trial(
        planned=PlannedTrial(index=0, pair=pair, quad=0, side=side, order="AB", seed=1),
        started_utc=NOW,
        ended_utc=NOW,
        metrics={"latency_ms": (reported_ms / 2, reported_ms / 2)},
        value=reported_ms / 2,
        problem=None,
        detail=None,
        resources=TrialResources(wall_s=wall_ms / 1000, cpu_s=None, peak_memory_bytes=None, load_1min=None),
        executions={},
        validated=None,
    )


def pairs(*rows: tuple[float, float, float, float]) -> list[Trial]:
    found = []
    for number, (baseline_ms, baseline_wall_ms, candidate_ms, candidate_wall_ms) in enumerate(rows):
        found.append(trial(number, "baseline", baseline_ms, baseline_wall_ms))
        found.append(trial(number, "candidate", candidate_ms, candidate_wall_ms))
    return found


@pytest.mark.parametrize(
    ("reported_ms", "expected"), [((50.0, 50.0), False), ((52.0, 52.0), False), ((53.0, 53.0), True)]
)
def test_fault_09_repetitions_cannot_add_up_to_more_than_passed(
    reported_ms: tuple[float, ...], expected: bool
) -> None:
    assert exceeds_clock(reported_ms, 0.1, 0.05) is expected


HONEST_GAIN = (80.0, 100.0, 40.0, 60.0)
FORGED_GAIN = (80.0, 100.0, 40.0, 100.0)


@pytest.mark.parametrize(
    ("rows", "caught"),
    [
        ([HONEST_GAIN] * 6, False),
        ([FORGED_GAIN] * 6, True),
        # Forged in most trials.
        ([FORGED_GAIN, HONEST_GAIN, *[FORGED_GAIN] * 4], True),
        # One trial whose start-up was slow is noise.
        ([FORGED_GAIN, *[HONEST_GAIN] * 5], False),
        # A slower candidate that also takes longer, and one that starts slower within the tolerance.
        ([(80.0, 100.0, 120.0, 140.0)] * 6, False),
        ([(80.0, 100.0, 80.0, 104.0)] * 6, False),
        # A slower candidate whose longer trials a busy machine, or the coordinator's own looks at them, held
        # up by a hundredth; one that hides most of its time is not taken for one.
        ([(0.1, 60.0, 600.0, 667.0), (0.1, 61.0, 600.0, 668.0)] * 3, False),
        ([(600.0, 660.0, 0.6, 667.0), (601.0, 661.0, 0.6, 668.0)] * 3, True),
        # Whoever reports no less than before claims nothing, however long it takes beside.
        ([(80.0, 100.0, 80.0, 140.0), (80.0, 101.0, 81.0, 141.0)] * 3, False),
        # The same where every trial reports one figure, as a benchmark with a coarse clock does.
        ([(80.0, 100.0, 80.0, 140.0), (80.0, 101.0, 80.0, 141.0)] * 3, False),
        ([(80.0, 100.0, 80.0, 140.0)] * 6, False),
        ([FORGED_GAIN], False),
        ([], False),
    ],
)
def test_m09_reporting_less_without_ending_sooner(
    rows: list[tuple[float, float, float, float]], caught: bool
) -> None:
    assert (unexplained_growth(pairs(*rows), make_spec(SINGLE)) is not None) is caught


def test_where_a_driver_holds_the_clock_or_the_metric_is_no_time_nothing_is_said() -> None:
    forged = pairs(*[FORGED_GAIN] * 6)
    assert unexplained_growth(forged, make_spec(PAIR)) is None
    no_time = SINGLE.model_copy(update={"clock_tolerance": None})
    assert unexplained_growth(forged, make_spec(no_time)) is None
    own_clock = SINGLE.model_copy(update={"instrument": "wall"})
    assert unexplained_growth(forged, make_spec(own_clock)) is None
    assert unexplained_growth([trial(None, "baseline", 1, 2)], make_spec(SINGLE)) is None
