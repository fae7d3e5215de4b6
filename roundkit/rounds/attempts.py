"""The door to the attempts ledger: nothing runs in a lane that was not reserved and claimed here.

Each call reads the frozen plan and the stored ledger, so that no restart resets identity, charge or deadline.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from roundkit.core.clock import now_utc
from roundkit.core.errors import Refusal, Refused, refuse
from roundkit.models.agent_run import AgentRun
from roundkit.models.attempts import AttemptBinding, AttemptRecord, Cost
from roundkit.models.base import Provenance
from roundkit.models.round_plan import FrozenLane, RoundPlan
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rules.attempts import (
    LaneAccount,
    account,
    binding_refusal,
    capacity_refusal,
    deadline_refusal,
    next_binding,
    open_reservation,
)
from roundkit.rules.authority import agent_provenance, authority_refusal
from roundkit.store import RoundStore, open_store


@dataclass(frozen=True)
class _Desk:
    """One call at the door, within one transaction of the store."""

    plan: RoundPlan
    store: RoundStore
    lane: FrozenLane
    now: datetime

    @property
    def book(self) -> LaneAccount:
        return account(self.lane, self.store.attempts.all(self.lane.id))

    def refuse_late(self) -> None:
        """Refuse what may not start any more."""
        _raise(deadline_refusal(self.lane, self.now))
        if self.store.steps.names():
            raise refuse("round-closed", "the round is being closed, or closed", remedy="start a new round")
        if self.lane.id in self.store.control.stopped_lanes():
            raise refuse(
                "lane-stopped",
                f"lane {self.lane.id} was stopped by the owner",
                remedy="its accepted tickets are still measured; go on in a new round",
            )

    def refuse_unauthorized(self, *, more: bool) -> None:
        """Refuse to start what could spend money without authority."""
        everybody = self.store.attempts.all()
        _raise(authority_refusal(self.plan, self.lane, everybody, self.now, more=more))

    def say(self, phase: str, binding: AttemptBinding) -> None:
        """Write an event."""
        self.store.events.add(
            f"attempt-{phase}", lane=binding.lane, ordinal=binding.ordinal, run_id=binding.run_id
        )


def read_account(folder: RoundFolder, lane: str) -> LaneAccount:
    """Return what the ledger holds of a lane."""
    plan = read_plan(folder)
    with open_store(folder.database) as store:
        return account(_lane(plan, lane), store.attempts.all(lane))


def propose(folder: RoundFolder, lane: str, workflow_run: str) -> AttemptBinding:
    """Return the binding of a lane's next attempt. Nothing is reserved by that.

    Args:
        folder: The round.
        lane: The lane's id.
        workflow_run: Id of the one run of a driver or workflow that asks.
    """
    return next_binding(read_plan(folder).digest(), read_account(folder, lane), workflow_run)


def check_room(folder: RoundFolder, lane: str, *, now: datetime | None = None) -> None:
    """Check, before anything is prepared for it, that a lane's next attempt could be reserved and claimed.

    Raises:
        Refused: as :func:`reserve` and :func:`claim` do.
    """
    with _at_desk(folder, lane, now) as desk:
        desk.refuse_late()
        reserved = open_reservation(desk.book) is not None
        if not reserved:
            _raise(capacity_refusal(desk.book))
        desk.refuse_unauthorized(more=not reserved)


def claim_next(folder: RoundFolder, lane: str, who: str) -> AttemptBinding:
    """Reserve and claim a lane's next attempt; whoever this returns to executes it.

    A reservation that a driver left when it died is taken up: nobody runs it, and it is charged.

    Args:
        folder: The round.
        lane: The lane's id.
        who: What asks, for the id of its run.

    Raises:
        Refused: as :func:`reserve` and :func:`claim` do.
    """
    binding = open_reservation(read_account(folder, lane))
    if binding is None:
        binding = propose(folder, lane, f"{who}-{uuid.uuid4().hex}")
        reserve(folder, binding)
    return claim(folder, binding).binding


def reserve(
    folder: RoundFolder,
    binding: AttemptBinding,
    *,
    provenance: Provenance | None = None,
    now: datetime | None = None,
) -> AttemptRecord:
    """Reserve an attempt, once; asked again with exactly the same binding, return what was reserved.

    Args:
        folder: The round.
        binding: From :func:`propose`.
        provenance: What fills the lane; what follows from its harness unless given.
        now: The time; the clock's unless given.

    Raises:
        Refused: ``lane-expired``, ``lane-stopped``, ``round-closed``, ``attempt-bound-differently``,
            ``attempts-exhausted``, ``budget-exhausted``, ``not-authorized`` or ``attempt-binding``.
    """
    with _at_desk(folder, binding.lane, now) as desk:
        desk.refuse_late()
        known = desk.store.attempts.find(binding)
        if known is not None:
            return known
        _raise(capacity_refusal(desk.book))
        desk.refuse_unauthorized(more=True)
        _raise(binding_refusal(binding, desk.plan.digest(), desk.book))
        record = desk.store.attempts.reserve(binding, provenance or agent_provenance(desk.lane), desk.now)
        desk.say("reserved", binding)
        return record


def claim(folder: RoundFolder, binding: AttemptBinding, *, now: datetime | None = None) -> AttemptRecord:
    """Claim a reserved attempt. Whoever this returns to executes it, and nobody else ever does.

    Raises:
        Refused: ``already-claimed``, ``attempt-cancelled``, ``attempt-unknown``, ``lane-expired``,
            ``lane-stopped``, ``round-closed`` or ``not-authorized``.
    """
    with _at_desk(folder, binding.lane, now) as desk:
        desk.refuse_late()
        desk.refuse_unauthorized(more=False)
        before = _known(desk, binding)
        if not desk.store.attempts.claim(binding.plan_digest, desk.now):
            cancelled = before.phase == "cancelled"
            raise refuse(
                "attempt-cancelled" if cancelled else "already-claimed",
                f"{_name(binding)} was {'cancelled' if cancelled else 'claimed by somebody else'}",
                remedy="it never runs again: reserve the lane's next attempt, if it has room for one",
            )
        desk.say("claimed", binding)
        return desk.store.attempts.get(binding.plan_digest)


def settle(
    folder: RoundFolder,
    binding: AttemptBinding,
    actual: Cost,
    *,
    run: AgentRun | None = None,
    now: datetime | None = None,
) -> AttemptRecord:
    """Record what a claimed attempt cost. Its charge stays the worst case; only the truth is added.

    Args:
        folder: The round.
        binding: The attempt.
        actual: From trusted counters; null where nobody counted.
        run: What is known of its agent's run, where an agent ran.
        now: The time; the clock's unless given.

    Raises:
        Refused: ``attempt-not-claimed`` or ``attempt-unknown``.
    """
    with _at_desk(folder, binding.lane, now) as desk:
        before = _known(desk, binding)
        if run is not None:
            desk.store.attempts.record_run(binding.plan_digest, run)
        if not desk.store.attempts.settle(binding.plan_digest, actual, desk.now):
            raise refuse(
                "attempt-not-claimed",
                f"{_name(binding)} is {before.phase}",
                remedy="only an attempt that is claimed is settled, and only once",
            )
        desk.say("settled", binding)
        return desk.store.attempts.get(binding.plan_digest)


def record_run(folder: RoundFolder, binding: AttemptBinding, run: AgentRun) -> AttemptRecord:
    """Keep what is known of a run whose cost nobody knows for sure: its attempt stays claimed, and charged.

    Raises:
        Refused: ``attempt-not-claimed`` or ``attempt-unknown``.
    """
    with _at_desk(folder, binding.lane, None) as desk:
        before = _known(desk, binding)
        if not desk.store.attempts.record_run(binding.plan_digest, run):
            what = f"{_name(binding)} is {before.phase}, or has its run on record"
            raise refuse("attempt-not-claimed", what)
        desk.say(f"ended-by-{run.end_reason}", binding)
        return desk.store.attempts.get(binding.plan_digest)


def cancel(folder: RoundFolder, binding: AttemptBinding, *, now: datetime | None = None) -> AttemptRecord:
    """Give up a reserved attempt that nobody claimed. It stays charged.

    Raises:
        Refused: ``already-claimed`` or ``attempt-unknown``.
    """
    with _at_desk(folder, binding.lane, now) as desk:
        before = _known(desk, binding)
        if before.phase == "cancelled":
            return before
        if not desk.store.attempts.cancel(binding.plan_digest, desk.now):
            raise refuse(
                "already-claimed",
                f"{_name(binding)} is {before.phase}",
                remedy="what was claimed may have run, and stays charged",
            )
        desk.say("cancelled", binding)
        return desk.store.attempts.get(binding.plan_digest)


@contextmanager
def _at_desk(folder: RoundFolder, lane: str, now: datetime | None) -> Iterator[_Desk]:
    plan = read_plan(folder)
    frozen = _lane(plan, lane)
    with open_store(folder.database) as store, store.transaction():
        # The clock is read once this process alone may write: waiting for another one may take its time.
        yield _Desk(plan, store, frozen, now or now_utc())


def _lane(plan: RoundPlan, lane: str) -> FrozenLane:
    try:
        return plan.lane(lane)
    except KeyError:
        names = ", ".join(known.id for known in plan.lanes)
        raise refuse(
            "unknown-lane", f"the round has no lane {lane!r}", remedy=f"its lanes are: {names}"
        ) from None


def _known(desk: _Desk, binding: AttemptBinding) -> AttemptRecord:
    record = desk.store.attempts.find(binding)
    if record is None:
        raise refuse("attempt-unknown", f"{_name(binding)} was not reserved", remedy="reserve it first")
    return record


def _name(binding: AttemptBinding) -> str:
    return f"attempt {binding.ordinal} of lane {binding.lane}"


def _raise(refusal: Refusal | None) -> None:
    if refusal is not None:
        raise Refused(refusal)
