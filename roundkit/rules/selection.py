"""Which ticket stands for a lane, and in which order lanes are laid on one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar


class Judged(Protocol):
    """What selection needs of a verdict."""

    @property
    def verdict(self) -> str:
        """Its name."""
        ...

    @property
    def gain(self) -> float | None:
        """The gain, as a fraction; null when nothing was estimated."""
        ...


class Selectable(Protocol):
    """What selection needs of a ticket."""

    @property
    def ticket(self) -> str:
        """Its name."""
        ...

    @property
    def lane(self) -> str:
        """Its lane."""
        ...

    @property
    def sequence(self) -> int:
        """Its place in the order of intake."""
        ...

    @property
    def verdict(self) -> Judged | None:
        """Its verdict; null before it is measured."""
        ...


_Ticket = TypeVar("_Ticket", bound=Selectable)


def select_tickets(tickets: Iterable[_Ticket], lanes: Sequence[str]) -> dict[str, _Ticket | None]:
    """Return for each lane its passing ticket with the largest gain, the earlier one at a tie, or None."""
    chosen: dict[str, _Ticket | None] = dict.fromkeys(lanes)
    for ticket in sorted(tickets, key=lambda ticket: ticket.sequence):
        if ticket.lane not in chosen or ticket.verdict is None or ticket.verdict.verdict != "pass":
            continue
        best = chosen[ticket.lane]
        if best is None or passing_gain(ticket) > passing_gain(best):
            chosen[ticket.lane] = ticket
    return chosen


def composition_order(selected: Mapping[str, _Ticket | None]) -> tuple[_Ticket, ...]:
    """Return the selected tickets by gain, largest first; the lane's id breaks ties."""
    eligible = [ticket for ticket in selected.values() if ticket is not None]
    return tuple(sorted(eligible, key=lambda ticket: (-passing_gain(ticket), ticket.lane)))


def passing_gain(ticket: Selectable) -> float:
    """Return the gain of a passing ticket, as a fraction.

    Raises:
        ValueError: the ticket has no gain.
    """
    if ticket.verdict is None or ticket.verdict.gain is None:
        raise ValueError(f"ticket {ticket.ticket} has no gain")
    return ticket.verdict.gain
