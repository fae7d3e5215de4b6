"""What a running serve holds in memory, and what it says when it ends."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal

from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import TicketRecord
from roundkit.models.measurement import SideRef
from roundkit.rounds.building import Built
from roundkit.rounds.candidate import Laid

Until = Literal["idle", "deadline"]
Ended = Literal["idle", "deadline", "drained", "paused"]
Report = Callable[[str], None]


@dataclass(frozen=True)
class ServeOutcome:
    """How serve ended, why the queue is paused if it is, and how many tickets have an end."""

    ended: Ended
    paused: str | None
    measured: int
    rejected: int


@dataclass(frozen=True)
class Job:
    """One experiment in flight: a ticket's, or an A/A check (no ticket)."""

    ticket: TicketRecord | None
    experiment_id: str


@dataclass
class State:
    """What this process holds beside the store; all of it can be made again from there."""

    building: dict[Future[tuple[Laid | None, Built]], TicketRecord] = field(default_factory=dict)
    built: dict[str, SideRef] = field(default_factory=dict)
    measuring: dict[Future[ExperimentRecord], Job] = field(default_factory=dict)
    unrecorded: list[tuple[Job, ExperimentRecord]] = field(default_factory=list)
    taken_back: list[Job] = field(default_factory=list)
    late: list[ExperimentRecord] = field(default_factory=list)
    last_built_lane: str | None = None
    trouble: str | None = None
    said_draining: bool = False
