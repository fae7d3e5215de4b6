"""Whose ticket is measured next: round-robin across lanes, first come first served within a lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar


class Queued(Protocol):
    """What a ticket's turn depends on."""

    @property
    def lane(self) -> str:
        """The ticket's lane."""
        ...

    @property
    def sequence(self) -> int:
        """Its place in the order of intake."""
        ...


_Ticket = TypeVar("_Ticket", bound=Queued)


def next_ticket(queued: Sequence[_Ticket], lanes: Sequence[str], last_lane: str | None) -> _Ticket | None:
    """Return the oldest ticket of the first lane after ``last_lane`` that has one waiting.

    Args:
        queued: Waiting tickets, any order.
        lanes: Every lane in the plan's order.
        last_lane: The lane that was served last, None at the start.
    """
    start = lanes.index(last_lane) + 1 if last_lane in lanes else 0
    for lane in [*lanes[start:], *lanes[:start]]:
        waiting = [ticket for ticket in queued if ticket.lane == lane]
        if waiting:
            return min(waiting, key=lambda ticket: ticket.sequence)
    return None


def aa_due(measured: int, last_check_after: int | None, interval: int) -> bool:
    """Say whether an A/A check is due: first of all, and then every ``interval`` measured tickets."""
    return last_check_after is None or measured - last_check_after >= interval
