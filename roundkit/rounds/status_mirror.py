"""A ticket's state as its lane may read it."""

from __future__ import annotations

from roundkit.models.lane import TicketStatus
from roundkit.models.ledger import TicketRecord
from roundkit.rounds.lane_doors import mirror_status
from roundkit.rounds.layout import RoundFolder
from roundkit.rules.verdict_words import with_evidence

_ORDER = {"queued": 0, "measuring": 1, "measured": 2, "rejected": 2}


def status_of(ticket: TicketRecord) -> TicketStatus:
    """Return what a lane may know of a ticket."""
    verdict = ticket.verdict
    return TicketStatus(
        ticket=ticket.ticket,
        state=ticket.state,
        sequence=_ORDER[ticket.state],
        verdict=verdict.verdict if verdict else None,
        gain=verdict.gain if verdict else None,
        low=verdict.low if verdict else None,
        high=verdict.high if verdict else None,
        reason=verdict.reason if verdict else ticket.reject_cause,
        detail=with_evidence(verdict) if verdict else ticket.reject_detail,
    )


def mirror_ticket(folder: RoundFolder, ticket: TicketRecord) -> None:
    """Write a ticket's state into its lane's status folder."""
    mirror_status(folder.clone(ticket.lane), f"{ticket.ticket}.json", status_of(ticket).to_bytes())
