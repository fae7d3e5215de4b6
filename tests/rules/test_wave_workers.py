"""Five decisions about the number of workers, each from a recorded file of events."""

from __future__ import annotations

from pathlib import Path

import pytest

from roundkit.models.wave_plan import WorkerRules
from roundkit.models.wave_traffic import RequestEvent, WaveTraffic, WorkerDecision, WorkerStep
from roundkit.rules.wave_traffic import Memory, longest_run, traffic_of, use_of
from roundkit.rules.wave_workers import decide, next_workers

EVENTS = Path(__file__).parent.parent / "waves" / "events"
RULES = WorkerRules(start=24, most=64, step=8, sustained_minutes=3, least_gain=0.10, stalls=2)


def recorded(name: str) -> list[RequestEvent]:
    lines = (EVENTS / f"{name}.jsonl").read_bytes().splitlines()
    return [RequestEvent.model_validate_json(line) for line in lines]


def traffic(name: str) -> WaveTraffic:
    return traffic_of(recorded(name), bad_lines=0, memory=Memory(None, None))


def history(*waves: tuple[int, str]) -> list[WorkerStep]:
    """Return the decisions after waves of so many workers with the traffic of so many files."""
    steps: list[WorkerStep] = []
    for number, (workers, name) in enumerate(waves, 1):
        decision = decide(RULES, f"{number:04d}", workers, traffic(name), steps)
        steps.append(WorkerStep(decision=decision, traffic=traffic(name)))
    return steps


def decided(*waves: tuple[int, str]) -> WorkerDecision:
    return history(*waves)[-1].decision


@pytest.mark.parametrize(
    ("waves", "reason", "following", "last_clean"),
    [
        ([(24, "clean")], "clean", 32, 24),
        ([(24, "burst")], "burst", 32, 24),
        ([(24, "clean"), (32, "platform-429")], "platform-429", 24, 24),
        ([(24, "clean"), (32, "sustained-429")], "sustained-429", 24, 24),
        ([(24, "clean"), (32, "stall")], "clean", 40, 24),
        ([(24, "clean"), (32, "stall"), (40, "stall")], "stall", 24, 24),
        ([(24, "platform-429")], "platform-429", 24, 24),
        ([(60, "clean")], "clean", 64, 60),
        ([(64, "clean")], "held", 64, 64),
        ([(64, "burst")], "held", 64, 64),
        # Nobody takes back a level for what happened before it.
        ([(24, "platform-429"), (24, "clean")], "clean", 32, 24),
        # A level that was held for a stall is tried again by one step, not by two.
        ([(24, "clean"), (32, "stall"), (40, "stall"), (24, "clean"), (32, "stall")], "stall", 24, 24),
    ],
    ids=str,
)
def test_w06_the_decisions(
    waves: list[tuple[int, str]], reason: str, following: int, last_clean: int
) -> None:
    decision = decided(*waves)
    assert (decision.reason, decision.next_workers) == (reason, following)
    if reason != "held":
        assert decision.last_clean == last_clean


def test_w06_a_step_that_buys_enough_ends_a_run_of_stalls() -> None:
    fast = traffic("clean").model_copy(update={"per_minute": 100.0})
    steps = history((24, "clean"), (32, "stall"))
    assert steps[-1].decision.stalls == 1
    decision = decide(RULES, "0003", 40, fast, steps)
    assert (decision.reason, decision.stalls, decision.last_clean) == ("clean", 0, 40)


def test_w06_a_rate_that_nobody_knows_is_no_stall() -> None:
    unknown = traffic("stall").model_copy(update={"per_minute": None})
    steps = history((24, "clean"), (32, "stall"))
    decision = decide(RULES, "0003", 40, unknown, steps)
    assert (decision.reason, decision.stalls) == ("clean", 1)


def test_w06_what_the_files_say() -> None:
    clean, burst = traffic("clean"), traffic("burst")
    assert clean.requests == 72
    assert clean.per_minute == pytest.approx(12, rel=0.02)
    assert (clean.platform_429, clean.provider_429, clean.longest_429_minutes) == (0, 0, 0)
    assert (burst.provider_429, burst.longest_429_minutes) == (20, 2)
    assert traffic("sustained-429").longest_429_minutes == 3
    # The platform's own 429 is no part of the providers' minutes.
    assert (traffic("platform-429").platform_429, traffic("platform-429").longest_429_minutes) == (1, 0)
    assert clean.by_model == {"large-1": (48, 0), "small-1": (24, 0)}
    assert clean.truncated == sum(event.truncated for event in recorded("clean")) == 4


def test_the_first_wave_starts_where_the_plan_says() -> None:
    assert next_workers(RULES, []) == 24
    assert next_workers(RULES, history((24, "clean"))) == 32


@pytest.mark.parametrize(
    ("minutes", "longest"), [([], 0), ([5], 1), ([5, 6, 8, 9, 10, 20], 3), ([3, 1, 2], 3)]
)
def test_the_longest_run_of_minutes(minutes: list[int], longest: int) -> None:
    assert longest_run(minutes) == longest


def test_less_than_a_minute_gives_no_rate() -> None:
    short = [event for event in recorded("clean") if event.at_s < recorded("clean")[0].at_s + 59]
    assert traffic_of(short, bad_lines=0, memory=Memory(None, None)).per_minute is None
    assert traffic_of([], bad_lines=0, memory=Memory(None, None)).per_minute is None


def test_what_a_shard_used_is_unknown_where_it_did_not_tell() -> None:
    assert use_of([]).turns is None
    events = [event for event in recorded("clean") if event.shard == 0]
    used = use_of(events)
    assert used.turns == sum(event.event == "answer" for event in events)
    assert used.micro_usd is None
    priced = [event.model_copy(update={"micro_usd": 3}) for event in events]
    assert use_of(priced).micro_usd == 3 * (used.turns or 0)
