"""Why a policy pilot is not frozen: every problem of its own file, decided without any effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from roundkit.core.errors import Refusal
from roundkit.models.pilot_draft import MOST_SLOTS
from roundkit.models.policy_plan import ARMS, PolicyDraft
from roundkit.models.round_plan import LaneDraft, RoundDraft
from roundkit.rules.policy_stopping import DIMENSIONS

FEWEST_LANES = 3
"""Fewer entries show nothing about rounds of several lanes; fixed by what the pilot asks."""
FEWEST_REPETITIONS = 3
"""Fewer pairs call equal arms faster a quarter of the time or more."""
_OWN = frozenset({"round_id", "deadline_utc"})
_NOT_STARTED = {"none": "by hand", "swarmflow": "by a team's engine, which a person starts"}
"""Harnesses that a run of a pilot starts nobody for: its rounds would be empty, and it would never end."""
At = Callable[..., str]


def arms_problems(parallel: RoundDraft, serial: RoundDraft, at: At) -> Iterator[Refusal]:
    """Yield what the two arms' rounds do not have in common; ids and deadlines may differ.

    Args:
        parallel: What the rounds of ``P`` are made from.
        serial: What those of ``S`` are.
        at: Names a place in the file of ``S``.
    """
    for key in RoundDraft.model_fields:
        if key in _OWN:
            continue
        mine, theirs = getattr(parallel, key), getattr(serial, key)
        if mine == theirs:
            continue
        for place in _places(key, mine, theirs):
            yield Refusal(
                "arms-differ",
                f"{'.'.join(map(str, place))} is not the same in both arms",
                at(*place),
                "harness, model, prompts, gates, devices and budgets are the same: name one file for both",
            )


def policy_problems(draft: PolicyDraft, round_: RoundDraft, at: At, round_at: At) -> Iterator[Refusal]:
    """Yield every problem of a policy pilot that is not already one of its round.

    Args:
        draft: The pilot.
        round_: What its rounds are made from.
        at: Names a place in the pilot's file.
        round_at: Names a place in the round's.
    """
    yield from _size_problems(draft, round_, at, round_at)
    yield from _same_agent_problems(round_.lanes, round_at)
    yield from _lane_problems(round_.lanes, round_at)
    yield from _budget_problems(draft, round_.lanes, at, round_at)


def _size_problems(draft: PolicyDraft, round_: RoundDraft, at: At, round_at: At) -> Iterator[Refusal]:
    lanes = len(round_.lanes)
    if lanes < FEWEST_LANES:
        yield Refusal(
            "too-few-lanes",
            f"{lanes} lanes; a policy pilot needs at least {FEWEST_LANES} entries that should be orthogonal",
            round_at("lanes"),
            "choose a task with more directions, or do not compare policies on it",
        )
    if not 1 < draft.lanes_per_round <= max(lanes, FEWEST_LANES):
        yield Refusal(
            "lanes-per-round",
            f"{draft.lanes_per_round} lanes in a round of P, of {lanes} lanes",
            at("lanes_per_round"),
            "give at least 2, and at most as many as the round has lanes",
        )
    if draft.repetitions < FEWEST_REPETITIONS:
        yield Refusal(
            "too-few-repetitions",
            f"{draft.repetitions} runs of each arm; equal arms would say faster too often",
            at("repetitions"),
            f"give at least {FEWEST_REPETITIONS}, better 5",
        )
    if draft.repetitions * len(ARMS) > MOST_SLOTS:
        yield Refusal(
            "too-many-repetitions",
            f"{draft.repetitions} runs of each arm; a pilot has at most {MOST_SLOTS} runs",
            at("repetitions"),
            "lower it",
        )


def _same_agent_problems(lanes: tuple[LaneDraft, ...], round_at: At) -> Iterator[Refusal]:
    first = lanes[0]
    for position, lane in enumerate(lanes):
        for key in ("harness", "model", "agent"):
            if getattr(lane, key) != getattr(first, key):
                yield Refusal(
                    "agent-differs",
                    f"lane {lane.id} has another {key} than lane {first.id}",
                    round_at("lanes", position, key),
                    "a policy pilot has one harness and one model: give every lane the same",
                )


def _lane_problems(lanes: tuple[LaneDraft, ...], round_at: At) -> Iterator[Refusal]:
    for position, lane in enumerate(lanes):
        if lane.deadline_utc is not None:
            yield Refusal(
                "lane-deadline",
                f"lane {lane.id} has a deadline of its own, which one round alone could keep",
                round_at("lanes", position, "deadline_utc"),
                "leave it out: each round's deadline follows from round_s",
            )
        by = _NOT_STARTED.get(lane.harness)
        if by is not None:
            yield Refusal(
                "lane-by-hand",
                f"lane {lane.id} is filled {by}, and a pilot's runs start by themselves",
                round_at("lanes", position, "harness"),
                "name a harness that starts an agent, or `replay`",
            )


def _budget_problems(
    draft: PolicyDraft, lanes: tuple[LaneDraft, ...], at: At, round_at: At
) -> Iterator[Refusal]:
    capped = [name for name in DIMENSIONS if getattr(draft.total_budget, name) is not None]
    if not capped:
        yield Refusal(
            "budget-uncapped",
            "the total budget caps nothing, so that no run would ever be censored",
            at("total_budget"),
            f"cap at least one of {', '.join(DIMENSIONS)}",
        )
    for name in capped:
        costs = [(position, getattr(lane.attempt_worst_case, name)) for position, lane in enumerate(lanes)]
        for position, cost in costs:
            if not cost:
                yield Refusal(
                    "budget-uncapped",
                    f"an attempt of lane {lanes[position].id} may cost any amount of {name}",
                    round_at("lanes", position, "attempt_worst_case"),
                    f"state attempt_worst_case.{name}: the total budget is charged with it",
                )
        needed, given = sum(cost or 0 for _, cost in costs), getattr(draft.total_budget, name)
        if needed > given:
            yield Refusal(
                "budget-too-small",
                f"one attempt of each lane is charged {needed} {name}, and a run has {given}",
                at("total_budget", name),
                "give each run enough for every lane once",
            )


def _places(key: str, mine: object, theirs: object) -> Iterator[tuple[str | int, ...]]:
    """Yield where two values of a key differ: lane by lane, field by field, or the key as a whole."""
    if key == "lanes" and isinstance(mine, tuple) and isinstance(theirs, tuple) and len(mine) == len(theirs):
        for position, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            for name in LaneDraft.model_fields:
                if getattr(one, name) != getattr(other, name):
                    yield ("lanes", position, name)
        return
    yield (key,)
