"""Everything that a person in the control room sees of a round, read at once and disturbing nobody."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from roundkit.host.devices import lease_names
from roundkit.host.lease import LeaseHolder, default_lease_root, holders
from roundkit.models.ledger import AaCheck, CompositionStep, RerunRecord
from roundkit.models.round_plan import DeviceSet, RoundPlan
from roundkit.rounds.control import RoundStatus, read_status
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.locks import describe_holder, is_held
from roundkit.store import RoundStore, open_store, store_exists

_RERUNS = ("rerun", "fallback")


@dataclass(frozen=True)
class HeldSet:
    """A device set of the plan, and who holds its devices now; nobody when empty."""

    device_set: DeviceSet
    holders: tuple[LeaseHolder, ...]


@dataclass(frozen=True)
class Closing:
    """How far ``close`` is.

    Attributes:
        running: Who closes the round, null when nobody does.
        begun: Whether it has begun: from then on nothing is measured for tickets.
        steps: Composition steps that are measured.
        reruns: Reruns that are measured.
        index_digest: Digest of the exported evidence's index, null before.
        advanced: The new incumbent; empty when the old one stays; null before that is decided.
    """

    running: str | None = None
    begun: bool = False
    steps: tuple[CompositionStep, ...] = ()
    reruns: tuple[RerunRecord, ...] = ()
    index_digest: str | None = None
    advanced: str | None = None


@dataclass(frozen=True)
class Room:
    """A round as its control room shows it.

    Attributes:
        status: Plan, serve, pause, tickets, A/A checks and attempts.
        launched: Whether the lanes were made.
        resuming: Whether a resume waits for its A/A check.
        draining: Whether serve was asked to end.
        stopped_lanes: Lanes that take no more submissions.
        driven_lanes: Lanes that a driver fills now.
        measuring: Subjects that are being measured.
        checks: A/A checks, oldest first.
        device_sets: The plan's device sets with their holders.
        closing: How far close is.
    """

    status: RoundStatus
    launched: bool
    resuming: bool
    draining: bool
    stopped_lanes: frozenset[str]
    driven_lanes: frozenset[str]
    measuring: tuple[str, ...]
    checks: tuple[AaCheck, ...]
    device_sets: tuple[HeldSet, ...]
    closing: Closing

    @property
    def plan(self) -> RoundPlan:
        """The frozen plan."""
        return self.status.plan

    def waiting(self) -> int:
        """Count the tickets that have no end yet."""
        return sum(ticket.state in {"queued", "measuring"} for _, ticket in self.status.tickets)


def read_room(folder: RoundFolder) -> Room:
    """Read a round, beside a running serve or close.

    Raises:
        Refused: there is no frozen round, its plan was changed, or it was pruned.
    """
    status = read_status(folder)
    driven = frozenset(
        lane.id for lane in status.plan.lanes if is_held(folder.store / f"drive-{lane.id}.lock")
    )
    closer = describe_holder(folder.close_lock) if is_held(folder.close_lock) else None
    held = _held_sets(status.plan)
    launched = folder.launch_file.exists()
    if not store_exists(folder.database):
        closing = Closing(running=closer)
        return Room(status, launched, False, False, frozenset(), driven, (), (), held, closing)
    with open_store(folder.database, read_only=True) as store:
        return Room(
            status=status,
            launched=launched,
            resuming=store.control.get("resume-needs-aa") is not None,
            draining=status.serve is not None and store.control.get("drain") is not None,
            stopped_lanes=store.control.stopped_lanes(),
            driven_lanes=driven,
            measuring=tuple(subject for _, subject in store.experiments.unfinished()),
            checks=tuple(store.aa_checks.all()),
            device_sets=held,
            closing=read_closing(store, closer),
        )


def read_pulse(folder: RoundFolder) -> tuple[object, ...]:
    """Return something small that differs whenever the room may differ; reading it costs next to nothing."""
    log = folder.database.with_name(f"{folder.database.name}-wal")
    files = (folder.plan_file, folder.database, log, folder.launch_file)
    locks = (folder.serve_lock, folder.close_lock, *sorted(folder.store.glob("drive-*.lock")))
    held = tuple((holder.device, holder.pid, holder.purpose) for holder in holders(default_lease_root()))
    return (*map(_stamp, files), *map(is_held, locks), held)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def read_closing(store: RoundStore, running: str | None = None) -> Closing:
    """Return how far close is, from what it has written down."""
    names = store.steps.names()
    bodies = {name: store.steps.get(name) or b"" for name in names}
    steps = [name for name in names if name.startswith("step-")]
    advanced, digest = bodies.get("advanced"), bodies.get("evidence")
    return Closing(
        running=running,
        begun=bool(names),
        steps=tuple(CompositionStep.from_bytes(bodies[name], place=name) for name in steps),
        reruns=tuple(RerunRecord.from_bytes(bodies[name], place=name) for name in _RERUNS if name in bodies),
        index_digest=None if digest is None else digest.decode(),
        advanced=None if advanced is None else advanced.decode(),
    )


def next_deadline(plan: RoundPlan, now: datetime) -> datetime | None:
    """Return the lane's or round's deadline that comes next; null when all have passed."""
    moments = {plan.deadline_utc, *(lane.deadline_utc for lane in plan.lanes)}
    return min((moment for moment in moments if moment > now), default=None)


def _held_sets(plan: RoundPlan) -> tuple[HeldSet, ...]:
    held = {holder.device: holder for holder in holders(default_lease_root())}
    rows = []
    for device_set in plan.device_sets:
        names = lease_names(device_set.platform, device_set.devices)
        rows.append(HeldSet(device_set, tuple(held[name] for name in names if name in held)))
    return tuple(rows)
