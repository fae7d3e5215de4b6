"""Where a serving round stands: what is paused, due, waiting or over. It only asks, and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from roundkit.core.clock import is_expired, now_utc
from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.serve_state import Ended, State, Until
from roundkit.rounds.stopping import StopRequest
from roundkit.rounds.waiting_submissions import Outboxes
from roundkit.rules.turns import aa_due
from roundkit.store import RoundStore


@dataclass(frozen=True)
class Standing:
    """The questions that serve asks between its steps.

    Attributes:
        plan: The frozen plan.
        store: What is on record.
        state: What serve holds beside it.
        outboxes: Whether every submission has been seen.
        stop: Whether somebody asked for the end.
    """

    plan: RoundPlan
    store: RoundStore
    state: State
    outboxes: Outboxes
    stop: StopRequest

    def paused(self) -> bool:
        """Say whether the queue is paused."""
        return self.store.control.get("paused") is not None

    def resuming(self) -> bool:
        """Say whether its owner goes on, once an A/A check agrees."""
        return self.store.control.get("resume-needs-aa") is not None

    def drained(self) -> bool:
        """Say whether somebody asked for the end."""
        return self.stop.is_set or self.store.control.get("drain") is not None

    def expired(self) -> bool:
        """Say whether the round's deadline has passed."""
        return is_expired(self.plan.deadline_utc, now_utc())

    def stopping(self) -> bool:
        """Say whether nothing new is begun any more."""
        return self.drained() or self.expired()

    def last_measured_lane(self) -> str | None:
        """Return the lane whose ticket was measured last; None before the first."""
        name = self.store.experiments.last_subject("ticket")
        ticket = self.store.tickets.find(name) if name else None
        return ticket.lane if ticket else None

    def aa_is_due(self) -> bool:
        """Say whether the next experiment is an A/A check."""
        if self.resuming():
            return True
        if self.paused() or not self.store.tickets.count(state="queued"):
            return False
        measured = self.store.tickets.count(state="measured")
        return aa_due(measured, self.store.aa_checks.last_after_tickets(), self.plan.aa_interval)

    def aa_in_flight(self) -> bool:
        """Say whether an A/A check is being measured."""
        return any(job.ticket is None for job in self.state.measuring.values())

    def something_waits(self) -> bool:
        """Say whether a device set that became free now would be used."""
        if self.stopping():
            return False
        if self.aa_is_due() and not self.aa_in_flight():
            return True
        ready = any(ticket.key in self.state.built for ticket in self.store.tickets.queue())
        return ready and not self.paused()

    def ended(self, until: Until) -> Ended | None:
        """Return why serve is over; None while it is not."""
        if self.state.measuring or self.state.building:
            return None
        # Results that a full disk kept from being recorded are measured again by the next serve.
        if self.state.unrecorded and not self.paused():
            return None
        if self.drained():
            return "drained"
        if self.expired():
            return "deadline"
        if until == "deadline":
            return None
        if self.paused() and not self.resuming():
            return "paused"
        waiting = self.store.tickets.count(state="queued") or not self.outboxes.caught_up
        return None if waiting else "idle"
