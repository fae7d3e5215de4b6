"""Attempts and budgets: identity, capacity, deadline and charge, from the frozen plan and the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from roundkit.core.canonical import LARGEST_INTEGER
from roundkit.core.clock import format_utc, is_expired
from roundkit.core.errors import Refusal
from roundkit.models.agent_run import AgentEnd
from roundkit.models.attempts import AttemptBinding, AttemptRecord, Cost
from roundkit.models.lane_agent import LaneAgent
from roundkit.models.round_plan import FrozenLane, LaneBudget, RoundPlan
from roundkit.rules.authority import can_spend
from roundkit.rules.identity import attempt_plan_digest

DIMENSIONS: tuple[str, ...] = tuple(Cost.model_fields)
UNSETTLED_ENDS: frozenset[AgentEnd] = frozenset({"deadline", "killed"})
"""Ends that leave an attempt claimed: what was going on at that moment, nobody counted."""
_RETRIED_ENDS: frozenset[AgentEnd] = frozenset({"provider-error", "preflight"})


@dataclass(frozen=True)
class LaneAccount:
    """One lane's side of the attempts ledger.

    Attributes:
        lane: The lane, with its caps.
        records: Its attempts, in whatever phase.
    """

    lane: FrozenLane
    records: tuple[AttemptRecord, ...]

    @property
    def charged(self) -> Cost:
        """The worst cases of all attempts added up; null where an attempt has no frozen cap."""
        return _added_up(self.records, lambda record, name: _amount(record.binding.worst_case, name))

    @property
    def spent(self) -> Cost:
        """What the attempts that ran cost; null where one is unknown, and where none was made at all."""
        ran = [record for record in self.records if record.claimed_utc is not None]
        if not self.records:
            return Cost()
        return _added_up(ran, lambda record, name: _amount(record.actual, name))

    @property
    def used_up(self) -> bool:
        """Whether no further attempt is allowed, by number or by budget."""
        return capacity_refusal(self) is not None

    @property
    def driven(self) -> bool:
        """Whether an attempt of it ran to its own end, so that nothing is to be repeated."""
        return any(
            record.phase == "settled" and (record.run is None or record.run.end_reason not in _RETRIED_ENDS)
            for record in self.records
        )

    def to_json_value(self) -> dict[str, Any]:
        """Return the account as JSON values."""
        return {
            "lane": self.lane.id,
            "allowed": self.lane.attempts,
            "budget": self.lane.budget.to_json_value(),
            "charged": self.charged.to_json_value(),
            "spent": self.spent.to_json_value(),
            "attempts": [record.to_json_value() for record in self.records],
        }


def account(lane: FrozenLane, records: Sequence[AttemptRecord]) -> LaneAccount:
    """Return the account of a lane out of the attempts of all."""
    return LaneAccount(lane, tuple(record for record in records if record.binding.lane == lane.id))


def next_binding(
    round_digest: str, book: LaneAccount, workflow_run: str, *, tries: int = 1
) -> AttemptBinding:
    """Return the binding of a lane's next attempt; its ordinal follows from the ledger.

    Args:
        round_digest: The frozen plan.
        book: What the ledger holds of the lane.
        workflow_run: Who asks: the id of one run of a driver or workflow.
        tries: How often whoever asks may run the lane's agent for this one attempt.
    """
    ordinal = len(book.records) + 1
    return AttemptBinding(
        round_digest=round_digest,
        lane=book.lane.id,
        ordinal=ordinal,
        plan_digest=attempt_plan_digest(round_digest, book.lane.id, ordinal),
        run_id=f"{workflow_run}/{ordinal}",
        worst_case=worst_case(book.lane, tries),
        tries=tries,
    )


def worst_case(lane: FrozenLane, tries: int) -> LaneBudget:
    """Return what an attempt of so many tries may cost: the lane's cap of one attempt, so many times."""
    amounts = {name: _amount(lane.attempt_worst_case, name) for name in DIMENSIONS}
    return LaneBudget(**{name: None if one is None else one * tries for name, one in amounts.items()})


def open_reservation(book: LaneAccount) -> AttemptBinding | None:
    """Return the binding of an attempt that was reserved and that nobody claimed, or None."""
    return next((record.binding for record in book.records if record.phase == "reserved"), None)


def deadline_refusal(lane: FrozenLane, now: datetime) -> Refusal | None:
    """Return why nothing starts in a lane any more, once its deadline is reached."""
    if not is_expired(lane.deadline_utc, now):
        return None
    return Refusal(
        "lane-expired",
        f"the deadline of lane {lane.id}, {format_utc(lane.deadline_utc)}, has passed",
        f"round-plan.json: lanes.{lane.id}.deadline_utc",
        "what was accepted is still measured; go on in a new round",
    )


def remaining_s(lane: FrozenLane, now: datetime) -> float:
    """Return the seconds after which work that starts in a lane now is killed, never negative.

    It ends at the lane's deadline, or when it has run for the wall time that one attempt may take.
    """
    left = max(0.0, (lane.deadline_utc - now).total_seconds())
    most = lane.attempt_worst_case.wall_s
    return left if most is None else min(left, float(most))


def last_moment(plan: RoundPlan, lane: FrozenLane, now: datetime) -> datetime:
    """Return when an agent that starts in a lane now is killed.

    At its deadline, after the wall time that one attempt may take, or when the authorization under which it
    spends money ends; whichever comes first.
    """
    ends = now + timedelta(seconds=remaining_s(lane, now))
    if plan.authorization is not None and can_spend(lane):
        return min(ends, plan.authorization.until_utc)
    return ends


def binding_refusal(binding: AttemptBinding, round_digest: str, book: LaneAccount) -> Refusal | None:
    """Return why a binding that the ledger does not know is not the lane's next attempt."""
    tries = binding.tries if book.lane.harness == "swarmflow" else 1
    wanted = next_binding(round_digest, book, binding.run_id.rpartition("/")[0], tries=tries)
    for name in AttemptBinding.model_fields:
        stands, computed = getattr(binding, name), getattr(wanted, name)
        if stands != computed:
            return Refusal(
                "attempt-binding",
                f"{name} of the attempt is {stands}, and {computed} follows from the plan and the ledger",
                f"attempts: {book.lane.id}",
                "ask for the lane's next attempt anew",
            )
    return None


def capacity_refusal(book: LaneAccount, *, tries: int = 1) -> Refusal | None:
    """Return why a lane has no room for one more attempt, of so many tries, at its worst case.

    An attempt keeps its worst case whatever it cost in the end; one that cost more keeps that.
    """
    lane, used = book.lane, len(book.records)
    if used >= lane.attempts:
        return Refusal(
            "attempts-exhausted",
            f"lane {lane.id} may make {_counted(lane.attempts, 'attempt')}, and the ledger holds {used}",
            f"round-plan.json: lanes.{lane.id}.attempts",
            "the number is frozen; allow more in a new round",
        )
    for name in DIMENSIONS:
        one = _amount(lane.attempt_worst_case, name)
        taken = sum(_held(record, name) for record in book.records)
        if one is not None and taken + one * tries > LARGEST_INTEGER:
            return Refusal(
                "worst-case-too-large",
                f"{tries} times {one} {name}, with what lane {lane.id} took, are more than a record holds",
                f"round-plan.json: lanes.{lane.id}.attempt_worst_case.{name}",
                "state what one try can really use, or no cap, in a new round",
            )
    most = worst_case(lane, tries)
    for name in DIMENSIONS:
        cap, worst = _amount(lane.budget, name), _amount(most, name)
        if cap is None:
            continue
        held = sum(_held(record, name) for record in book.records)
        if worst is None or held + worst > cap:
            return Refusal(
                "budget-exhausted",
                f"lane {lane.id} may use {cap} {name}; {held} are taken, and one more attempt may use "
                f"{'any amount' if worst is None else worst}",
                f"round-plan.json: lanes.{lane.id}.budget.{name}",
                "the budget is frozen; allow more in a new round",
            )
    return None


def ledger_problems(round_digest: str, book: LaneAccount) -> Iterator[str]:
    """Yield what in a lane's attempts does not follow from the plan, from identities to charges and times."""
    lane = book.lane
    for position, record in enumerate(book.records):
        what = f"attempt {record.binding.ordinal}"
        before = LaneAccount(lane, book.records[:position])
        refusal = binding_refusal(record.binding, round_digest, before)
        if refusal is not None:
            yield f"{what}: {refusal.message}"
        if any(record.binding.run_id == other.binding.run_id for other in before.records):
            yield f"{what}: run {record.binding.run_id} made another attempt"
        yield from (f"{what}: {problem}" for problem in _phase_problems(record, lane))
        for name, moment in (("reserved", record.reserved_utc), ("claimed", record.claimed_utc)):
            if moment is not None and is_expired(lane.deadline_utc, moment):
                yield f"{what}: was {name} at {format_utc(moment)}, at or after the lane's deadline"
    if len(book.records) > lane.attempts:
        yield f"{len(book.records)} attempts, {lane.attempts} are allowed"
    for name in DIMENSIONS:
        cap, charged = _amount(lane.budget, name), _amount(book.charged, name)
        if cap is not None and book.records and (charged is None or charged > cap):
            yield f"{'an unknown amount' if charged is None else charged} of {name} charged, the cap is {cap}"


def _phase_problems(record: AttemptRecord, lane: FrozenLane) -> Iterator[str]:
    phase = record.phase
    wanted = (
        ("claimed_utc", phase in {"claimed", "settled"}),
        ("ended_utc", phase in {"settled", "cancelled"}),
        ("actual", phase == "settled"),
    )
    for name, present in wanted:
        if (getattr(record, name) is not None) != present:
            yield f"is {phase} {'without' if present else 'with'} {name}"
    yield from _run_problems(record, lane)
    moments = [record.reserved_utc, record.claimed_utc, record.ended_utc]
    passed = [moment for moment in moments if moment is not None]
    if passed != sorted(passed):
        yield "was not reserved, claimed and ended in this order"


def _run_problems(record: AttemptRecord, lane: FrozenLane) -> Iterator[str]:
    """Yield what does not fit between an attempt and the record of its run."""
    run = record.run
    if run is None:
        return
    if record.claimed_utc is None:
        yield f"is {record.phase} with a run"
        return
    if not record.claimed_utc <= run.started_utc <= run.ended_utc:
        yield "its run was not started after the claim and ended after that"
    if (run.end_reason in UNSETTLED_ENDS) != (record.phase == "claimed"):
        yield f"is {record.phase}, and its run ended: {run.end_reason}"
    prices = (lane.agent or LaneAgent()).prices
    if run.usage.basis == "list-price" and (
        prices is None or prices.micro_usd(run.usage.tokens) != run.usage.micro_usd
    ):
        yield f"cost {run.usage.micro_usd} micro-USD by list price, which does not follow from its tokens"
    if record.actual is None:
        return
    counted = {
        "turns": run.usage.turns, "tokens": run.usage.tokens.total, "micro_usd": run.usage.micro_usd,
    }  # fmt: skip
    for name, amount in counted.items():
        if _amount(record.actual, name) != amount:
            yield f"cost {_amount(record.actual, name)} {name}, and its tool counted {amount}"


def _held(record: AttemptRecord, name: str) -> int:
    return max(_amount(record.binding.worst_case, name) or 0, _amount(record.actual, name) or 0)


def _added_up(records: Sequence[AttemptRecord], amount: Callable[[AttemptRecord, str], int | None]) -> Cost:
    totals: dict[str, int | None] = {}
    for name in DIMENSIONS:
        amounts = [amount(record, name) for record in records]
        known = [value for value in amounts if value is not None]
        # A sum that no record can hold is unknown, too.
        whole = len(known) == len(amounts) and sum(known) <= LARGEST_INTEGER
        totals[name] = sum(known) if whole else None
    return Cost(**totals)


def _amount(vector: Cost | LaneBudget | None, name: str) -> int | None:
    value: int | None = getattr(vector, name, None)
    return value


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
