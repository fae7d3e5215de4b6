"""What became of every lane and its search plan entry; of an open round, how it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roundkit.models.attempts import AttemptRecord
from roundkit.models.ledger import CompositionStep, LaneOutcome, LaneRecord, RerunRecord, TicketRecord
from roundkit.models.round_plan import FrozenLane, RoundPlan
from roundkit.models.search_plan import EntryStatus
from roundkit.rules.agent_cost import cost_line
from roundkit.rules.attempts import account

STATEMENT = (
    "A new incumbent is development evidence. It is not acceptance of the campaign: that is decided "
    "elsewhere, on data that no round has seen."
)
_NO_RESULT_REASONS = frozenset({"deadline"})


@dataclass(frozen=True)
class Ending:
    """How a round ends: the accepted rerun, if any, and the lanes whose files it holds."""

    accepted: RerunRecord | None

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes that are in the new incumbent."""
        return self.accepted.lanes if self.accepted else ()


def ending_of(rerun: Sequence[RerunRecord]) -> Ending:
    """Return the first passing rerun as the round's ending."""
    return Ending(next((record for record in rerun if record.verdict.verdict == "pass"), None))


def lane_records(
    plan: RoundPlan,
    tickets: Sequence[TicketRecord],
    selected: dict[str, TicketRecord | None],
    steps: Sequence[CompositionStep],
    ending: Ending,
    attempts: Sequence[AttemptRecord],
) -> tuple[LaneRecord, ...]:
    """Return one record a lane, in the plan's order."""
    kept_steps = {step.lane for step in steps if step.kept}
    records = []
    for lane in plan.lanes:
        own = [ticket for ticket in tickets if ticket.lane == lane.id]
        chosen = selected.get(lane.id)
        outcome = _outcome(lane, own, chosen, kept_steps, ending)
        records.append(
            LaneRecord(
                **_on_record(lane, own, chosen, attempts),
                outcome=outcome,
                entry_status=_STATUS[outcome],
                sentence=_sentence(outcome, own),
            )
        )
    return tuple(records)


@dataclass(frozen=True)
class OpenLane:
    """A lane of an open round, named like the record that close writes; what it has not decided is None."""

    lane: str
    entry: str
    plane: str
    harness: str
    model: str | None
    tickets: tuple[str, ...]
    selected: str | None
    ticket_gain: float | None
    outcome: None
    entry_status: None
    attempts: int
    cost_micro_usd: int | None
    sentence: str
    cost: str


def open_lanes(
    plan: RoundPlan,
    tickets: Sequence[TicketRecord],
    steps: Sequence[CompositionStep],
    attempts: Sequence[AttemptRecord],
) -> tuple[OpenLane, ...]:
    """Return how each lane of an open round stands, in the plan's order."""
    composed = {step.ticket for step in steps}
    lanes = []
    for lane in plan.lanes:
        own = [ticket for ticket in tickets if ticket.lane == lane.id]
        chosen = next((ticket for ticket in own if ticket.ticket in composed), None)
        known = _on_record(lane, own, chosen, attempts)
        lanes.append(OpenLane(**known, outcome=None, entry_status=None, sentence=_so_far(own)))
    return tuple(lanes)


def _on_record(
    lane: FrozenLane,
    own: Sequence[TicketRecord],
    chosen: TicketRecord | None,
    attempts: Sequence[AttemptRecord],
) -> dict[str, Any]:
    """Return what is known of a lane whether it is decided or not."""
    book = account(lane, attempts)
    return {
        "lane": lane.id,
        "entry": lane.entry,
        "plane": lane.plane,
        "harness": lane.harness,
        "model": lane.model,
        "tickets": tuple(ticket.ticket for ticket in own),
        "selected": chosen.ticket if chosen else None,
        "ticket_gain": chosen.verdict.gain if chosen and chosen.verdict else None,
        "attempts": len(book.records),
        "cost_micro_usd": book.spent.micro_usd,
        "cost": cost_line(book),
    }


def _so_far(tickets: Sequence[TicketRecord]) -> str:
    """Return how a lane stands, in words."""
    if not tickets:
        return "nothing was submitted yet"
    words = Counter(ticket.verdict.verdict if ticket.verdict else ticket.state for ticket in tickets)
    return f"not decided yet; so far: {', '.join(f'{count} {word}' for word, count in words.items())}"


_STATUS: dict[LaneOutcome, EntryStatus] = {
    "composed": "kept",
    "skipped": "planned",
    "rerun-failed": "planned",
    "no-result": "planned",
    "no-passing-ticket": "rejected",
}


def _outcome(
    lane: FrozenLane,
    tickets: Sequence[TicketRecord],
    chosen: TicketRecord | None,
    kept_steps: set[str],
    ending: Ending,
) -> LaneOutcome:
    if lane.id in ending.lanes:
        return "composed"
    if chosen is not None:
        return "rerun-failed" if lane.id in kept_steps else "skipped"
    if all(_says_nothing(ticket) for ticket in tickets):
        return "no-result"
    return "no-passing-ticket"


def _says_nothing(ticket: TicketRecord) -> bool:
    """A measurement that broke, or that the deadline cut off, is no result for or against a lane."""
    if ticket.verdict is None:
        return ticket.state != "rejected"
    return ticket.verdict.verdict == "invalid" or ticket.verdict.reason in _NO_RESULT_REASONS


def _sentence(outcome: LaneOutcome, tickets: Sequence[TicketRecord]) -> str:
    match outcome:
        case "composed":
            return "in the new incumbent"
        case "skipped":
            return "passed alone, lost its gain in composition; back to planned"
        case "rerun-failed":
            return "composed, but the final rerun did not confirm it; back to planned"
        case "no-result":
            if not tickets:
                return "nothing was submitted; nothing is known about its direction"
            return "its measurement broke or came too late; nothing is known"
        case "no-passing-ticket":
            return _why_none_passed(tickets)


def _why_none_passed(tickets: Sequence[TicketRecord]) -> str:
    last = max(tickets, key=lambda ticket: ticket.sequence)
    if last.verdict is not None:
        return f"no ticket passed; the last one: {last.verdict.sentence}"
    return f"no ticket passed; the last one was rejected: {last.reject_cause}"


def entry_reason(record: LaneRecord, round_id: str) -> str:
    """Return the reason that a search plan revision states."""
    reasons: dict[LaneOutcome, str] = {
        "composed": f"in the new incumbent of round {round_id}",
        "skipped": "lost-in-composition",
        "rerun-failed": "rerun-failed",
        "no-result": "no-result",
        "no-passing-ticket": "no-passing-ticket",
    }
    return reasons[record.outcome]
