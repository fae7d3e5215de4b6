"""Serve's queue on a virtual clock: the same turns and the same A/A checks, with no device behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Literal

from roundkit.rules.turns import aa_due, next_ticket


@dataclass(frozen=True, slots=True)
class VirtualTicket:
    """A candidate that waits for a device set, or is measured on one.

    Attributes:
        lane: Its lane.
        sequence: Its place in the order of intake.
        minutes: What measuring it takes.
        ready: When it was built and began to wait.
    """

    lane: str
    sequence: int
    minutes: float
    ready: float


@dataclass(slots=True)
class VirtualQueue:
    """The measuring half of serve.

    Attributes:
        lanes: Every lane of the round, in its order.
        device_sets: How many tickets are measured at once.
        aa_interval: Tickets between two checks of the incumbent against itself.
        aa_minutes: What the next check takes; None: there are no checks.
        waited: Minutes that each measured ticket waited for a device set.
        busy: Minutes that device sets were held, over all of them.
        checks: A/A checks that were made.
    """

    lanes: Sequence[str]
    device_sets: int
    aa_interval: int
    aa_minutes: Callable[[], float] | None
    waited: list[float] = field(default_factory=list)
    busy: float = 0.0
    checks: int = 0
    _waiting: list[VirtualTicket] = field(default_factory=list)
    _in_use: int = 0
    _measured: int = 0
    _last_check_after: int | None = None
    _checking: bool = False
    _last_lane: str | None = None

    def add(self, ticket: VirtualTicket) -> None:
        """Put a built candidate into the queue."""
        self._waiting.append(ticket)

    def start(self, now: float) -> list[tuple[float, VirtualTicket | None]]:
        """Start what can be started now; return when each ends, with its ticket, or None for a check."""
        started: list[tuple[float, VirtualTicket | None]] = []
        while self._in_use < self.device_sets and self._waiting:
            due = self.aa_minutes is not None and aa_due(
                self._measured, self._last_check_after, self.aa_interval
            )
            if due and not self._checking and self.aa_minutes is not None:
                self._checking = True
                started.append(self._hold(now, self.aa_minutes(), None))
                continue
            if due and self._last_check_after is None:
                break
            ticket = next_ticket(self._waiting, self.lanes, self._last_lane)
            if ticket is None:
                break
            self._waiting.remove(ticket)
            self._last_lane = ticket.lane
            self.waited.append(now - ticket.ready)
            started.append(self._hold(now, ticket.minutes, ticket))
        return started

    def finish(self, ticket: VirtualTicket | None) -> None:
        """Record that a ticket was measured, or that a check passed."""
        self._in_use -= 1
        if ticket is None:
            self._checking = False
            self._last_check_after = self._measured
            self.checks += 1
        else:
            self._measured += 1

    def _hold(
        self, now: float, minutes: float, ticket: VirtualTicket | None
    ) -> tuple[float, VirtualTicket | None]:
        self._in_use += 1
        self.busy += minutes
        return now + minutes, ticket


@dataclass(frozen=True, slots=True)
class Submission:
    """One candidate of a virtual agent.

    Attributes:
        work: Minutes of the agent before it.
        build: Minutes from submission to a built candidate, or to its rejection.
        minutes: What measuring it takes; None: it is rejected before.
    """

    work: float
    build: float
    minutes: float | None


@dataclass(frozen=True, slots=True)
class Served:
    """One round's lanes and measurements on the virtual clock.

    Attributes:
        minutes: From the launch to the last verdict, and to the end of the last agent.
        sequences: For each lane and each of its submissions the place in the order of intake.
        queue: What is known of the queue.
    """

    minutes: float
    sequences: dict[tuple[str, int], int]
    queue: VirtualQueue


_Kind = Literal["submit", "ready", "verdict", "measured"]


def serve_virtually(agents: Mapping[str, Sequence[Submission]], queue: VirtualQueue) -> Served:
    """Play one round: every agent works, submits, waits for the verdict, and goes on with its next candidate.

    Args:
        agents: Each lane's submissions, in order.
        queue: An empty queue.
    """
    return _VirtualRound(agents, queue).play()


class _VirtualRound:
    """What is to happen in a round, in order of time, and of two things at one time the earlier planned."""

    def __init__(self, agents: Mapping[str, Sequence[Submission]], queue: VirtualQueue) -> None:
        self._agents = agents
        self._queue = queue
        self._events: list[tuple[float, int, _Kind, str, int, VirtualTicket | None]] = []
        self._planned = 0
        self._sequences: dict[tuple[str, int], int] = {}

    def play(self) -> Served:
        now = 0.0
        for lane in self._agents:
            self._work_on(now, lane, 0)
        while self._events:
            now, _, kind, lane, number, ticket = heappop(self._events)
            if kind == "submit":
                self._submit(now, lane, number)
            elif kind == "ready":
                self._enqueue(now, lane, number)
            elif kind == "measured":
                self._finish(now, lane, number, ticket)
            else:
                self._work_on(now, lane, number + 1)
        return Served(now, self._sequences, self._queue)

    def _at(
        self, time: float, kind: _Kind, lane: str, number: int, ticket: VirtualTicket | None = None
    ) -> None:
        self._planned += 1
        heappush(self._events, (time, self._planned, kind, lane, number, ticket))

    def _work_on(self, now: float, lane: str, number: int) -> None:
        if number < len(self._agents[lane]):
            self._at(now + self._agents[lane][number].work, "submit", lane, number)

    def _submit(self, now: float, lane: str, number: int) -> None:
        self._sequences[lane, number] = len(self._sequences)
        submission = self._agents[lane][number]
        then: _Kind = "verdict" if submission.minutes is None else "ready"
        self._at(now + submission.build, then, lane, number)

    def _enqueue(self, now: float, lane: str, number: int) -> None:
        minutes = self._agents[lane][number].minutes or 0.0
        self._queue.add(VirtualTicket(lane, self._sequences[lane, number], minutes, now))
        self._measure(now)

    def _finish(self, now: float, lane: str, number: int, ticket: VirtualTicket | None) -> None:
        self._queue.finish(ticket)
        if ticket is not None:
            self._at(now, "verdict", lane, number)
        self._measure(now)

    def _measure(self, now: float) -> None:
        for end, started in self._queue.start(now):
            lane, number = _submission_of(started, self._sequences)
            self._at(end, "measured", lane, number, started)


def drain(tickets: Sequence[VirtualTicket], queue: VirtualQueue) -> float:
    """Measure tickets that are all there at the start; return when the last of them has its verdict."""
    for waiting in tickets:
        queue.add(waiting)
    ends: list[tuple[float, int, VirtualTicket | None]] = []
    now = 0.0
    started = 0
    while True:
        for end, ticket in queue.start(now):
            started += 1
            heappush(ends, (end, started, ticket))
        if not ends:
            return now
        now, _, done = heappop(ends)
        queue.finish(done)


def _submission_of(ticket: VirtualTicket | None, sequences: dict[tuple[str, int], int]) -> tuple[str, int]:
    if ticket is None:
        return "", 0
    return next(of for of, sequence in sequences.items() if sequence == ticket.sequence)
