"""Which ticket stands for a lane, and in which order lanes are laid on one another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roundkit.models.ledger import TicketRecord


def select_tickets(tickets: Iterable[TicketRecord], lanes: Sequence[str]) -> dict[str, TicketRecord | None]:
    """Return for each lane its passing ticket with the largest gain, the earlier one at a tie, or None."""
    chosen: dict[str, TicketRecord | None] = dict.fromkeys(lanes)
    for ticket in sorted(tickets, key=lambda ticket: ticket.sequence):
        if ticket.lane not in chosen or ticket.verdict is None or ticket.verdict.verdict != "pass":
            continue
        best = chosen[ticket.lane]
        if best is None or passing_gain(ticket) > passing_gain(best):
            chosen[ticket.lane] = ticket
    return chosen


def composition_order(selected: dict[str, TicketRecord | None]) -> tuple[TicketRecord, ...]:
    """Return the selected tickets by gain, largest first; the lane's id breaks ties."""
    eligible = [ticket for ticket in selected.values() if ticket is not None]
    return tuple(sorted(eligible, key=lambda ticket: (-passing_gain(ticket), ticket.lane)))


def passing_gain(ticket: TicketRecord) -> float:
    """Return the gain of a passing ticket, as a fraction.

    Raises:
        ValueError: the ticket has no gain.
    """
    if ticket.verdict is None or ticket.verdict.gain is None:
        raise ValueError(f"ticket {ticket.ticket} has no gain")
    return ticket.verdict.gain
