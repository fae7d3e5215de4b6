"""Everything that a person in the control room sees of a round, read at once and disturbing nobody."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from roundkit.host.devices import lease_names
from roundkit.host.lease import LeaseHolder, default_lease_root, holders
from roundkit.models.ledger import AaCheck
from roundkit.models.round_plan import DeviceSet, RoundPlan
from roundkit.rounds.closing import Closing
from roundkit.rounds.control import RoundStatus, read_status
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.locks import is_held
from roundkit.store import open_store, store_exists


@dataclass(frozen=True)
class HeldSet:
    """A device set of the plan, and who holds its devices now; nobody when empty."""

    device_set: DeviceSet
    holders: tuple[LeaseHolder, ...]


@dataclass(frozen=True)
class Room:
    """A round as its control room shows it.

    Attributes:
        status: Plan, serve, pause, tickets, A/A checks, attempts and how far close is.
        resuming: Whether a resume waits for its A/A check.
        draining: Whether serve was asked to end.
        stopped_lanes: Lanes that take no more submissions.
        driven_lanes: Lanes that a driver fills now.
        checks: A/A checks, oldest first.
        device_sets: The plan's device sets with their holders.
    """

    status: RoundStatus
    resuming: bool
    draining: bool
    stopped_lanes: frozenset[str]
    driven_lanes: frozenset[str]
    checks: tuple[AaCheck, ...]
    device_sets: tuple[HeldSet, ...]

    @property
    def plan(self) -> RoundPlan:
        """The frozen plan."""
        return self.status.plan

    @property
    def closing(self) -> Closing:
        """How far close is."""
        return self.status.closing

    @property
    def launched(self) -> bool:
        """Whether the lanes were made."""
        return self.status.launched

    @property
    def measuring(self) -> tuple[str, ...]:
        """Subjects that are being measured."""
        return self.status.measuring

    def waiting(self) -> int:
        """Count the tickets that have no end yet."""
        return sum(ticket.state in {"queued", "measuring"} for _, ticket in self.status.tickets)


def read_room(folder: RoundFolder) -> Room:
    """Read a round, beside a running serve or close.

    Raises:
        Refused: there is no frozen round, its plan was changed, or it was pruned.
    """
    status = read_status(folder)
    driven = frozenset(lane.id for lane in status.plan.lanes if is_held(folder.drive_lock(lane.id)))
    held = _held_sets(status.plan)
    if not store_exists(folder.database):
        return Room(status, False, False, frozenset(), driven, (), held)
    with open_store(folder.database, read_only=True) as store:
        return Room(
            status=status,
            resuming=store.control.get("resume-needs-aa") is not None,
            draining=status.serve is not None and store.control.get("drain") is not None,
            stopped_lanes=store.control.stopped_lanes(),
            driven_lanes=driven,
            checks=tuple(store.aa_checks.all()),
            device_sets=held,
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
