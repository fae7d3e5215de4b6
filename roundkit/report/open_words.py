"""An open round in words: how far it is, why its queue stands still, and that nothing is decided."""

from __future__ import annotations

from collections import Counter

from roundkit.core.text import counted
from roundkit.report.markup import joined, moment, percent
from roundkit.rounds.snapshot import OpenRound

PROVISIONAL = (
    "Provisional: the round is open. Tickets may still come, be measured and change what is selected; only "
    "close decides, and only its fresh rerun is a gain."
)


def open_decision(source: OpenRound) -> str:
    """Return how far the round is, in one line."""
    tickets = source.ledger.tickets
    if not tickets:
        return "Nothing is decided: no ticket yet"
    done = sum(ticket.state in {"measured", "rejected"} for ticket in tickets)
    return f"Nothing is decided yet: {done:,} of {counted(len(tickets), 'ticket')} settled"


def open_why(source: OpenRound) -> str:
    """Return what there is so far: states, verdicts, and the best estimate with its caveat."""
    ledger = source.ledger
    if not ledger.tickets:
        return f"{counted(len(ledger.lanes), 'lane')} may submit until {moment(source.plan.deadline_utc)}."
    words = Counter(ticket.verdict.verdict if ticket.verdict else ticket.state for ticket in ledger.tickets)
    states = joined([f"{count} {word}" for word, count in sorted(words.items())])
    passed = [
        ticket.verdict.gain
        for ticket in ledger.tickets
        if ticket.verdict and ticket.verdict.verdict == "pass" and ticket.verdict.gain is not None
    ]
    best = (
        f" The largest estimate that passed is {percent(max(passed))}, biased upward by being the largest."
        if passed
        else " None has passed."
    )
    stage = f" Close has begun: {counted(len(ledger.composition), 'step')} composed." * (
        source.state == "closing"
    )
    return f"So far: {states}.{best}{stage}"


def paused_sentence(source: OpenRound) -> str | None:
    """Return why nothing is measured; None when the queue is not paused."""
    if source.paused is None:
        return None
    waiting = sum(ticket.state in {"queued", "measuring"} for ticket in source.ledger.tickets)
    return (
        f"The queue is paused: {source.paused}. {counted(waiting, 'ticket')} wait; roundkit resume asks "
        "for an A/A check, and the queue goes on once it has passed."
    )
